/** The public names of the codecs, the model catalogue and the log readers. */

export { type BodyProblem, fromBody } from './anthropic/decode-request.ts'
export { overflowOfReply, toFailure } from './anthropic/failure.ts'
export { type Credentials, fromHeaders, type RequestHead, toHeaders } from './anthropic/headers.ts'
export { type GrowingRequest, growingText, growRequest } from './anthropic/incremental-request.ts'
export { eventsOf, every, framesOf, toFrames } from './anthropic/reply-frames.ts'
export {
  bodyText,
  type EncodedRequest,
  type EncodeOptions,
  encodeRequest,
  type RawTexts,
} from './anthropic/request.ts'
export { fromResponse, toResponse } from './anthropic/response.ts'
export { byteStart, endBytes, endReply, fromBytes, fromFrame, streamStart } from './anthropic/stream.ts'
export {
  type Catalogue,
  catalogueOf,
  type FoundModel,
  lookUpModel,
  modelCatalogue,
} from './catalogue/catalogue.ts'
export { withModels } from './catalogue/custom-models.ts'
export { FITTED_FROM, type FittedConstants } from './catalogue/estimator-constants.ts'
export {
  CLAUDE_CODE_REMINDER,
  estimatorWeights,
  fittedWeights,
  type ReminderRule,
} from './catalogue/estimator-weights.ts'
export {
  type CacheFacts,
  type Capabilities,
  type Doubt,
  type ModelEntry,
  pricesOn,
  type ThinkingFacts,
  type ThinkingMode,
  TOKENIZER_FAMILIES,
  type TokenizerFamily,
  type Ttl,
} from './catalogue/model-entry.ts'
export { failureOfThrown } from './failure/classify-failure.ts'
export { findOverflow, findSilentOverflow } from './failure/overflow.ts'
export {
  decodeSse,
  decodeSseText,
  encodeComment,
  encodeFrame,
  endSse,
  type Frame,
  type SseEnd,
  type SseState,
  sseStart,
} from './http/sse.ts'
export { given } from './optional-fields.ts'
export { type AnthropicVersion, profileFor } from './profiles/provider-profile.ts'
export { createLogReader, detectFormat, formatOfLine } from './readers/log-format.ts'
export {
  createDamageNotes,
  type DamageNotes,
  inLineOrder,
  type LogFormat,
  type LogMeta,
  type LogReader,
  type ReadEnd,
  type ReadRecord,
} from './readers/log-reader.ts'
export { claudeCodeReminder, isClaudeCodeRestart } from './readers/record-reader.ts'
