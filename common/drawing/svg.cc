#include "common/drawing/svg.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/console/text.h"

namespace d2l {
namespace {

// Browsers show an element's title when the mouse is on the element.
std::string EndOf(const char* element, const std::string& tooltip) {
  if (tooltip.empty()) return "/>\n";
  return absl::StrCat("><title>", EscapeXml(tooltip), "</title></", element,
                      ">\n");
}

std::string Attributes(const Svg::Shape& shape) {
  return absl::StrFormat("fill=\"%s\" stroke=\"%s\" stroke-width=\"%.4g\"",
                         EscapeXml(shape.fill), EscapeXml(shape.stroke),
                         shape.stroke_width);
}

std::string Attributes(const Svg::Stroke& stroke) {
  return absl::StrFormat(
      "fill=\"none\" stroke=\"%s\" stroke-width=\"%.4g\"%s%s",
      EscapeXml(stroke.colour), stroke.width,
      stroke.dashed ? " stroke-dasharray=\"4 3\"" : "",
      stroke.arrow ? " marker-end=\"url(#arrow)\"" : "");
}

}  // namespace

std::string PaletteColour(int i) {
  constexpr const char* kColours[] = {"#56B4E9", "#E69F00", "#009E73",
                                      "#CC79A7", "#F0E442", "#0072B2",
                                      "#D55E00", "#999999"};
  return kColours[i % 8];
}

std::string EscapeXml(const std::string& text) {
  return absl::StrReplaceAll(PrintableText(text, "\t\n"), {{"&", "&amp;"},
                                                           {"<", "&lt;"},
                                                           {">", "&gt;"},
                                                           {"\"", "&quot;"},
                                                           {"'", "&#39;"}});
}

Svg::Svg(double width, double height, const std::string& title) {
  text_ = absl::StrFormat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
      "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
      "font-family=\"%s\">\n"
      "<title>%s</title>\n"
      "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
      "markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" "
      "orient=\"auto\"><path d=\"M 0 0 L 8 4 L 0 8 z\" fill=\"#333333\"/>"
      "</marker></defs>\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      width, height, width, height, kSvgFonts, EscapeXml(title));
}

void Svg::Rect(double x, double y, double width, double height,
               const Shape& shape, const std::string& tooltip) {
  absl::StrAppendFormat(&text_,
                        "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
                        "height=\"%.2f\" rx=\"%.4g\" %s%s",
                        x, y, width, height, shape.radius, Attributes(shape),
                        EndOf("rect", tooltip));
}

void Svg::Circle(double x, double y, double radius, const Shape& shape,
                 const std::string& tooltip) {
  absl::StrAppendFormat(&text_,
                        "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.4g\" %s%s", x, y,
                        radius, Attributes(shape), EndOf("circle", tooltip));
}

void Svg::Line(double x1, double y1, double x2, double y2,
               const Stroke& stroke) {
  Path(absl::StrFormat("M %.2f %.2f L %.2f %.2f", x1, y1, x2, y2), stroke);
}

void Svg::Path(const std::string& data, const Stroke& stroke) {
  absl::StrAppendFormat(&text_, "<path d=\"%s\" %s/>\n", data,
                        Attributes(stroke));
}

void Svg::Text(double x, double y, const std::string& text, const Font& font) {
  const std::string turned =
      font.turned == 0
          ? ""
          : absl::StrFormat(" transform=\"rotate(%.4g %.2f %.2f)\"",
                            font.turned, x, y);
  absl::StrAppendFormat(
      &text_,
      "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.4g\" text-anchor=\"%s\" "
      "fill=\"%s\"%s%s xml:space=\"preserve\">%s</text>\n",
      x, y, font.size, font.anchor, EscapeXml(font.colour),
      font.bold ? " font-weight=\"bold\"" : "", turned, EscapeXml(text));
}

void Svg::Begin(const char* group) {
  absl::StrAppend(&text_, "<g class=\"", group, "\">\n");
}

void Svg::End() { absl::StrAppend(&text_, "</g>\n"); }

double Svg::TextWidth(const std::string& text, double size) {
  // The widest common sans serif, DejaVu Sans, has 0.6 of its size per letter.
  return 0.62 * size * static_cast<double>(TextColumns(text));
}

std::string TextAsSvg(const std::string& text, const std::string& title) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  constexpr double kSize = 12;
  constexpr double kLine = 16;
  std::size_t longest = TextColumns(title);
  for (const std::string& line : lines) {
    longest = std::max(longest, TextColumns(line));
  }
  Svg svg(40 + Svg::TextWidth(std::string(longest, 'm'), kSize),
          50 + kLine * static_cast<double>(lines.size()), title);
  svg.Text(20, 26, title, {14, "start", "#222222", true});
  double y = 50;
  for (const std::string& line : lines) {
    svg.Text(20, y, line, {kSize, "start"});
    y += kLine;
  }
  return svg.ToString();
}

}  // namespace d2l
