/** Entry point of the package: request and response codecs, the model catalogue, and the readers of session logs. */

export { toAnthropicFailure } from './anthropic/anthropic-errors.ts'
export {
  decodeReplyBytes,
  decodeReplyFrame,
  finishReply,
  finishReplyBytes,
  initialByteStreamState,
  initialStreamState,
} from './anthropic/decode-stream.ts'
export {
  type EncodedRequest,
  type EncodeRequestOptions,
  type ExactJsonTexts,
  encodeRequest,
  joinEncodedRequest,
} from './anthropic/encode-request.ts'
export { type Credentials, toRequestHeaders } from './anthropic/headers.ts'
export {
  extendRequest,
  type IncrementalRequest,
  joinIncrementalRequest,
  type MessageText,
  type MessageTexts,
} from './anthropic/incremental-request.ts'
export {
  createReplySplitter,
  encodeReplyFrames,
  replyToEvents,
  toSseFrames,
} from './anthropic/reply-frames.ts'
export { decodeResponse, encodeResponse } from './anthropic/response.ts'
export {
  type Catalogue,
  createCatalogue,
  type FoundModel,
  lookUpModel,
  modelCatalogue,
} from './catalogue/catalogue.ts'
export { withModels } from './catalogue/custom-models.ts'
export { FITTING_DATA, type FittedConstants } from './catalogue/estimator-constants.ts'
export {
  CLAUDE_CODE_REMINDER,
  createFittedWeights,
  estimatorWeights,
  type ReminderRule,
} from './catalogue/estimator-weights.ts'
export {
  type CacheFacts,
  type CacheLifetime,
  type ModelCapabilities,
  type ModelEntry,
  pricesAtDate,
  type ThinkingFacts,
  type ThinkingMode,
  TOKENIZER_FAMILIES,
  type TokenizerFamily,
  type UncertainField,
} from './catalogue/model-entry.ts'
export { failureFromException } from './failure/classify-failure.ts'
export { findPromptOverflow } from './failure/prompt-overflow.ts'
export {
  decodeSse,
  decodeSseText,
  encodeSseFrame,
  finishSse,
  initialSseState,
  type SseFrame,
  type SseRemainder,
  type SseState,
} from './http/sse.ts'
export { omitUndefined } from './optional-fields.ts'
export { type AnthropicVersion, createProviderProfile } from './profiles/provider-profile.ts'
export {
  type ClaudeCodeTotals,
  findReminderRule,
  isClaudeCodeRestart,
  readClaudeCodeTotals,
} from './readers/claude-code-reader.ts'
export { createLogReader, detectLineFormat, detectLogFormat } from './readers/log-format.ts'
export {
  createDamageCollector,
  createLogOrigin,
  type DamageCollector,
  type LogEndResult,
  type LogFormat,
  type LogMeta,
  type LogReader,
  type LogRecord,
  mergeDamage,
} from './readers/log-reader.ts'
