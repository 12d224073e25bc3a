// What a run shows and asks on a terminal: the learner's prediction.
//
// For the thread that runs main(). Only AskForChoice waits for a key.

#ifndef D2L_COMMON_LESSON_RUN_PROMPT_H_
#define D2L_COMMON_LESSON_RUN_PROMPT_H_

#include <optional>
#include <string>
#include <vector>

namespace d2l {

// Whether a person reads the output.
bool IsOnTerminal();

// Whether a person can answer. The system stops a background program that
// reads.
bool CanAsk();

// The learner's choice, from 1; 0 if the learner skips the question, nothing if
// the learner skips all further ones.
std::optional<int> AskForChoice(const std::vector<std::string>& choices);

// Gives the terminal back the settings that it had before AskForChoice. For
// signal handlers.
void RestoreTerminal();

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_RUN_PROMPT_H_
