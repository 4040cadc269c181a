/**
 * `tidemark/project`: files that a user or a project keeps for an agent: skills, slash commands, agent definitions and
 * hooks; and the texts that a program adds to a conversation.
 *
 * @module tidemark/project
 */

export { wrapInReminder } from '@tidemark/core/facts/host-texts'
export { createCommandMessage } from '@tidemark/core/facts/user-input'
export { listInvokedSkills, skillListingSource } from '@tidemark/core/sources/skills'
export { defuseReminderTags } from '@tidemark/core/summary/accept-summary'
export { findHooksProblem, type HookSettings } from './hooks/hook-settings.ts'
export { readMatterList, readMatterText } from './sources/front-matter.ts'
export {
  type FoundPromptFile,
  type PromptFilePlaces,
  type PromptFiles,
  readPromptFiles,
} from './sources/prompt-files.ts'
