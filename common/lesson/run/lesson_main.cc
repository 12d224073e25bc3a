// main() of a lesson.

#include "common/lesson/run/runner.h"

int main(int argc, char** argv) {
  return d2l::LessonMain(argc, argv, d2l::Program::kLesson);
}
