// The questions: what happened is hidden until an answer is chosen. Without
// JavaScript, and on paper, everything shows.
"use strict";

document.documentElement.classList.add("js");

addEventListener("DOMContentLoaded", () => {
  const articles = [...document.querySelectorAll("article")].filter(
      (article) => article.querySelector(".choices"));
  const all = document.querySelector("button.all");
  const words = all && {show: all.textContent, hide: all.dataset.hide};

  function show(article, shown, chosen = null) {
    article.classList.toggle("hidden-answer", !shown);
    const chose = chosen && !chosen.classList.contains("plain");
    article.querySelector(".choices").classList.toggle("answered", Boolean(chose));
    for (const button of article.querySelectorAll(".choices button")) {
      button.setAttribute("aria-pressed", String(button === chosen));
    }
    // The prediction again, beside what answers it.
    const mine = article.querySelector(".prediction span");
    mine.hidden = !chose;
    if (chosen) {
      mine.querySelector("b").textContent = [chosen.textContent, chosen.dataset.mark]
          .filter(Boolean).join(" · ");
    }
    if (!all) return;
    const hidden = articles.some((one) => one.classList.contains("hidden-answer"));
    all.textContent = hidden ? words.show : words.hide;
  }

  for (const article of articles) {
    for (const button of article.querySelectorAll(".choices button")) {
      button.addEventListener("click", () => show(article, true, button));
    }
    show(article, false);
  }
  if (all) {
    all.hidden = articles.length === 0;
    all.addEventListener("click", () => {
      const hidden = articles.some((one) => one.classList.contains("hidden-answer"));
      for (const article of articles) show(article, hidden);
    });
  }
  // A recording is loaded when it is unfolded: there is one in each cell.
  for (const details of document.querySelectorAll(".timeline")) {
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("iframe")) return;
      const frame = document.createElement("iframe");
      frame.src = details.dataset.src;
      frame.title = details.dataset.title;
      details.querySelector("summary").after(frame);
    });
  }
  // An exercise that the address names may stand among answers that are hidden.
  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const article = target && target.closest(".answer") &&
        target.closest(".hidden-answer");
    if (article) show(article, true);
    if (target) target.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  reveal();
});

// On paper nothing can be unfolded.
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details:not(.timeline)")) {
    details.open = true;
  }
});
