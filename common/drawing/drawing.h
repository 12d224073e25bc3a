// Drawing: a picture of what a cell did, as text and as SVG, or as a graph of
// which Graphviz makes an SVG.
//
//   const TracedProgram run = TraceProgram([&] { z = x * y + 2; });
//   cell.Show(DrawGraph(run.graph, "z = x * y + 2"));
//
// The text is plain ASCII for a terminal or a pipe. The SVG is self-contained:
// no script, nothing fetched.
//
// A value; it owns what it holds.

#ifndef D2L_COMMON_DRAWING_DRAWING_H_
#define D2L_COMMON_DRAWING_DRAWING_H_

#include <string>

#include "common/base/console/language.h"

namespace d2l {

struct Drawing {
  Phrase name;           // the heading, and part of the file's name
  std::string text;      // whole lines
  std::string svg;       // empty if there is a graph
  std::string dot = "";  // the graph, in Graphviz's language (graphviz.h)
};

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_DRAWING_H_
