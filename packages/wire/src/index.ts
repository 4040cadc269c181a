/** The public names of the codecs, the catalogue and the readers, one by one. */
export { toFailure } from './anthropic/failure.ts'
export type { Fragment, Zone } from './anthropic/fragment.ts'
export { toFrames } from './anthropic/frames.ts'
export { type BodyProblem, type DecodedBody, fromBody } from './anthropic/from-body.ts'
export {
  type GrowingMessages,
  type GrowingRequest,
  type GrowOptions,
  growingText,
  growRequest,
  messageTexts,
} from './anthropic/growing-request.ts'
export {
  API_VERSIONS,
  AUTH_STYLES,
  type Credentials,
  fromHeaders,
  type RequestHead,
  toHeaders,
} from './anthropic/headers.ts'
export type { MessageText } from './anthropic/message-text.ts'
export { eventsOf, every, framesOf } from './anthropic/reply-events.ts'
export { overflowOfReply } from './anthropic/reply-overflow.ts'
export {
  bodyText,
  type EncodedRequest,
  type EncodeOptions,
  encodeRequest,
  type RawTexts,
} from './anthropic/request.ts'
export { fromResponse, toResponse } from './anthropic/response.ts'
export { type ByteState, byteStart, endBytes, endReply, fromBytes, fromFrame } from './anthropic/stream.ts'
export { type StreamState, streamStart } from './anthropic/stream-state.ts'
export { type Catalogue, catalogueOf, modelCatalogue } from './catalogue/catalogue.ts'
export { FITTED_FROM, type FittedConstants } from './catalogue/estimator-constants.ts'
export { CLAUDE_CODE_REMINDER, estimatorWeights, fittedWeights } from './catalogue/estimator-weights.ts'
export type { ModelProblem } from './catalogue/given-problems.ts'
export { type FoundModel, type LookUp, lookUpModel, type UnknownModel } from './catalogue/look-up.ts'
export type {
  CacheFacts,
  Capabilities,
  Doubt,
  ModelEntry,
  PastPrices,
  RequestLimits,
  ThinkingFacts,
  ThinkingMode,
  Ttl,
} from './catalogue/model-entry.ts'
export { pricesOn } from './catalogue/model-prices.ts'
export type { Spelling } from './catalogue/spelling.ts'
export { type EstimateBasis, TOKENIZER_FAMILIES, type TokenizerFamily } from './catalogue/tokenizers.ts'
export { knownUnknowns, type Unknown } from './catalogue/unknowns.ts'
export { type WithModels, withModels } from './catalogue/with-models.ts'
export { findOverflow, findSilentOverflow } from './failure/overflow.ts'
export { failureOfThrown } from './failure/thrown.ts'
export type { AnthropicVersion } from './profiles/anthropic-profile.ts'
export { type ProfileOptions, profileFor } from './profiles/profile-for.ts'
export { claudeCodeReminder } from './readers/claude-code-reminder.ts'
export { isClaudeCodeRestart } from './readers/claude-code-restart.ts'
export { createLogReader } from './readers/create-log-reader.ts'
export { createDamageNotes, type DamageNotes, inLineOrder } from './readers/damage-notes.ts'
export { type DetectedFormat, detectFormat, formatOfLine } from './readers/detect-format.ts'
export type { LogMeta } from './readers/log-meta.ts'
export type { LogFormat, LogReader, ReadEnd, ReadRecord } from './readers/log-reader.ts'
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
} from './sse.ts'
