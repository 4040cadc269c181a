/** What a summary ought to hold and does not: what the gate checks, fact by fact. */
import { LAST_WORDS } from './error-pieces.ts'
import type { Facts } from './facts.ts'
import type { FailingCommand } from './failing-command.ts'
import { type MessageRules, mustHold, type PersonMessage } from './person-message.ts'
import { mentionsFile, namesFile } from './presence.ts'
import { isOpen, type TodoItem } from './todo-state.ts'
import { isEdited, type TouchedFile } from './touched-file.ts'

export interface Missing {
  readonly messages: readonly PersonMessage[]
  readonly files: readonly TouchedFile[]
  readonly todos: readonly TodoItem[]
  /** Commands that still fail and whose last error is not told; of older ones its last words will do. */
  readonly commands: readonly FailingCommand[]
}

export interface MissingRules extends MessageRules {
  /** How many errors, newest first, are to be told in full. */
  readonly errors: number
}

/** `text` has no secrets any more, and neither have the facts: so they can be compared. */
export function missingFrom(text: string, facts: Facts, rules: MissingRules): Missing {
  const failing = facts.commands.filter(({ isSettled }) => !isSettled)
  return {
    messages: facts.messages.filter(
      (message) => !mustHold(message, rules).every((part) => text.includes(part)),
    ),
    files: facts.files.filter((file) => !isNamed(text, file)),
    todos: facts.todos.filter((todo) => isOpen(todo) && !text.includes(todo.text)),
    commands: failing.filter(({ error }, index) => {
      const told = error.trim()
      return !text.includes(index < rules.errors ? told : told.slice(-LAST_WORDS))
    }),
  }
}

/** A changed file must be told from others of its name; of one that was only read the name will do. */
function isNamed(text: string, file: TouchedFile): boolean {
  return isEdited(file) ? namesFile(text, file.path) : mentionsFile(text, file.path)
}
