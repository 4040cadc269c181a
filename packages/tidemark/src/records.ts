/**
 * `tidemark/records`: reads a conversation record by record, as `session.records()`, the event `appended` and `readLog`
 * give it: what the user typed, what the model answered and called, and what was done to the context.
 *
 * @module tidemark/records
 */

export { describeCause } from '@tidemark/core/cache/explain-break'
export { REFUSED_CALL_TEXT, readRefusalText } from '@tidemark/core/facts/host-texts'
export { describeToolCall, readToolResultText } from '@tidemark/core/facts/tool-calls'
export { readUserInputs, readUserTypedText } from '@tidemark/core/facts/user-input'
export { isTextBlock, isToolResult, isToolUse, toBlocks } from '@tidemark/core/log/block'
export {
  isBranchSwitch,
  isCompactBoundary,
  isKnownRecord,
  isMicrocompactBoundary,
  isPrompt,
  isSyntheticError,
  type KnownRecord,
  type SessionRecord,
} from '@tidemark/core/log/record'
export { readCacheLifetime } from '@tidemark/core/tokens/usage'
export { listConversation } from './session/conversation-records.ts'
