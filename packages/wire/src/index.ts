/** The public names of the codecs, the catalogue and the readers, one by one. */

export { type BodyProblem, type DecodedBody, fromBody } from './anthropic/decode-request.ts'
export { overflowOfReply, toFailure } from './anthropic/failure.ts'
export {
  API_VERSIONS,
  AUTH_STYLES,
  type Credentials,
  fromHeaders,
  type RequestHead,
  toHeaders,
} from './anthropic/headers.ts'
export {
  type GrowingMessages,
  type GrowingRequest,
  type GrowOptions,
  growingText,
  growRequest,
  type MessageText,
  messageTexts,
} from './anthropic/incremental-request.ts'
export { eventsOf, every, framesOf, toFrames } from './anthropic/reply-frames.ts'
export {
  bodyText,
  type EncodedRequest,
  type EncodeOptions,
  encodeRequest,
  type Fragment,
  type RawTexts,
  type Zone,
} from './anthropic/request.ts'
export { fromResponse, toResponse } from './anthropic/response.ts'
export {
  type ByteState,
  byteStart,
  endBytes,
  endReply,
  fromBytes,
  fromFrame,
  type StreamState,
  streamStart,
} from './anthropic/stream.ts'
export {
  type Catalogue,
  catalogueOf,
  type FoundModel,
  knownUnknowns,
  type LookUp,
  lookUpModel,
  modelCatalogue,
  type Spelling,
  type Unknown,
  type UnknownModel,
} from './catalogue/catalogue.ts'
export { type ModelProblem, type WithModels, withModels } from './catalogue/custom-models.ts'
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
  type EstimateBasis,
  type ModelEntry,
  type PastPrices,
  pricesOn,
  type RequestLimits,
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
export type { AnthropicVersion } from './profiles/anthropic-profile.ts'
export { type ProfileOptions, profileFor } from './profiles/provider-profile.ts'
export { createLogReader, type DetectedFormat, detectFormat, formatOfLine } from './readers/log-format.ts'
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
