// Svg: a self-contained picture (SVG 1.1): no script, nothing fetched, on a
// white background.
//
//   Svg svg(200, 80, "z = x * y");
//   svg.Rect(10, 10, 60, 20, {PaletteColour(0), "#333333"}, "mul");
//   svg.Text(40, 24, "mul", {12, "middle"});
//   WriteAtomically("z.svg", svg.ToString());
//
// Text is made printable (PrintableText) and escaped. Lengths are in pixels.
// Not thread-safe.

#ifndef D2L_COMMON_DRAWING_SVG_H_
#define D2L_COMMON_DRAWING_SVG_H_

#include <string>

namespace d2l {

inline constexpr char kSvgFonts[] = "DejaVu Sans, Verdana, sans-serif";

class Svg {
 public:
  struct Shape {
    std::string fill = "none";
    std::string stroke = "none";
    double stroke_width = 1;
    double radius = 0;  // of corners
  };
  struct Stroke {
    std::string colour = "#333333";
    double width = 1;
    bool dashed = false;
    bool arrow = false;  // at the end
  };
  struct Font {
    double size = 12;
    const char* anchor = "start";  // "middle", "end"
    std::string colour = "#222222";
    bool bold = false;
    double turned = 0;  // degrees, clockwise
  };

  Svg(double width, double height, const std::string& title);

  // A browser shows the tooltip when the mouse is on the shape; "" for none.
  void Rect(double x, double y, double width, double height, const Shape& shape,
            const std::string& tooltip = "");
  void Circle(double x, double y, double radius, const Shape& shape,
              const std::string& tooltip = "");
  void Line(double x1, double y1, double x2, double y2, const Stroke& stroke);
  // `data` is a path's "d", in numbers and letters only.
  void Path(const std::string& data, const Stroke& stroke);
  void Text(double x, double y, const std::string& text, const Font& font);

  // Shapes and texts from Begin to End are a group of this class, for a script.
  void Begin(const char* group);
  void End();

  std::string ToString() const { return text_ + "</svg>\n"; }

  // The approximate width of the text.
  static double TextWidth(const std::string& text, double size);

 private:
  std::string text_;
};

// Colours that are easy to distinguish, also for the colour-blind (M. Okabe and
// K. Ito, Color Universal Design); they repeat.
std::string PaletteColour(int i);

// Escapes the text of an XML element or attribute, and makes all but tabs and
// line ends printable.
std::string EscapeXml(const std::string& text);

// The text line by line.
std::string TextAsSvg(const std::string& text, const std::string& title);

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_SVG_H_
