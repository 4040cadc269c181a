/**
 * Notices a server that drops the beginning of a prompt that is too long, and answers all the same: it reports fewer
 * tokens than the prompt can have. From then on the session assumes the smaller window that this report shows.
 */
import { toApiMessages } from '../context/flatten-context.ts'
import type { ApiMessage } from '../context/payload.ts'
import { formatCount } from '../cost/prices.ts'
import { type Block, isOpaqueBlock, isTextBlock, isToolResult, isToolUse, toBlocks } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import type { TokenUsage } from '../log/reply-report.ts'
import {
  calibrateSize,
  computeLowerBound,
  readReportedContextTokens,
  type TokenEstimate,
} from '../tokens/usage.ts'
import type { TurnEvent } from './events.ts'
import type { TurnHost } from './host.ts'
import { withPlanningState } from './measure-context.ts'
import { countPrefixTokens } from './next-request.ts'
import type { SessionState } from './session-state.ts'
import type { TurnContext } from './session-writer.ts'

/** What is known of a prompt before its response comes. */
export interface PromptSizeEstimate extends TokenEstimate {
  /** Tokens that the last response to a shorter prompt of this context reported; null if none did. */
  readonly before: number | null
  /** Estimate of what was added since that prompt. */
  readonly added: TokenEstimate
  /** True if all of that prompt is in this one: the same system prompt and tools, and no thinking that may be left out. */
  readonly isExtended: boolean
  /** Fewest tokens that the texts of the prompt have with any tokenizer. */
  readonly countLeast: () => number
}

/**
 * Estimates the prompt that is about to be sent; null if its count would show nothing: the provider refuses prompts that
 * are too long, or edits the context. `isSamePrefix`: true if the previous prompt had the same system prompt and tools.
 */
export function estimatePromptSize(
  state: SessionState,
  host: TurnHost,
  isSamePrefix: boolean = hasSamePrefix(state),
): PromptSizeEstimate | null {
  const { profile, policy } = host
  if (profile.capabilities.tooLong === 'refused') return null
  const { parameters, tools } = host.readOfferedPrefix()
  // Where the provider is asked to edit the context, it counts what is left.
  if (parameters[profile.spelling.editsParameter] != null) return null
  const { meter } = withPlanningState(state, host).context
  const { measuredResponse, tokensBefore, thinkingBefore, calibration } = meter
  const all = tokensBefore.last ?? 0
  const prefix = countPrefixTokens(state, host)
  const estimate = (tokens: number): TokenEstimate => calibrateSize(calibration, tokens, policy.estimate)
  // Thinking of earlier responses need not be part of the prompt.
  const whole = estimate(prefix + all - (thinkingBefore.last ?? 0))
  const since = measuredResponse === null ? 0 : (tokensBefore.at(measuredResponse.firstEntry) ?? 0)
  const messages = toApiMessages(state.flat)
  // What the provider adds to one prompt, or leaves out of it, may differ in the next one.
  const isFixed = !tools.some(isProviderRunTool) && !messages.some(hasChangingPart)
  return {
    ...whole,
    before: measuredResponse?.context ?? null,
    added: estimate(all - since),
    isExtended: isSamePrefix && thinkingBefore.last === 0 && isFixed,
    countLeast: () => {
      const blocks = messages.flatMap(({ role, content }) =>
        toBlocks(content).map((block) => (role === 'assistant' ? withoutInlineThinking(block) : block)),
      )
      return blocks.reduce((sum, block) => sum + countLeastTokens(block), 0)
    },
  }
}

/** Returns true for a tool that the provider runs. Its results are part of one call's prompt, but not of the next one's. */
export function isProviderRunTool({ name, function: definition }: JsonObject): boolean {
  return name === undefined && definition === undefined
}

/** True if a message has results of a tool that the provider ran, or thinking within its text. */
function hasChangingPart({ role, content }: ApiMessage): boolean {
  return (
    role === 'assistant' &&
    toBlocks(content).some((block) => isOpaqueBlock(block) || withoutInlineThinking(block) !== block)
  )
}

/** Some servers leave thinking in the text, and take it out of earlier answers. */
const END_OF_THINKING = '</think>'

function withoutInlineThinking(block: Block): Block {
  const end = isTextBlock(block) ? block.text.lastIndexOf(END_OF_THINKING) : -1
  return isTextBlock(block) && end !== -1
    ? { ...block, text: block.text.slice(end + END_OF_THINKING.length) }
    : block
}

function hasSamePrefix({ prefix, whenRequested }: SessionState): boolean {
  return whenRequested !== null && whenRequested.prefix.current?.epoch === prefix.current?.epoch
}

/** Upper bound of the characters per token, once runs of one character are cut. */
const CHARACTERS_PER_TOKEN = 7
/** Runs of one character, such as blanks or lines of dashes, have few tokens however long they are. */
const LONG_RUN = /(.)\1{3,}/gs

/** Returns fewer tokens than the block has with any tokenizer; 0 for blocks without text. */
function countLeastTokens(block: Block): number {
  if (isTextBlock(block)) return countLeastOfText(block.text)
  if (isToolUse(block)) return countLeastOfText(JSON.stringify(block.input))
  if (!isToolResult(block)) return 0
  return toBlocks(block.content ?? []).reduce((sum, part) => sum + countLeastTokens(part), 0)
}

function countLeastOfText(text: string): number {
  return text.replace(LONG_RUN, '$1').length / CHARACTERS_PER_TOKEN
}

/** No server has a smaller window: a lower count is not that of a whole prompt. */
const SMALLEST_WINDOW = 1_024

/** Returns the tokens that the provider counted if that is fewer than the prompt has by any estimate; null otherwise. */
export function findTruncatedCount(
  size: PromptSizeEstimate,
  usage: TokenUsage | null | undefined,
): number | null {
  const reported = readReportedContextTokens(usage)
  const { before, added, isExtended } = size
  if (reported < SMALLEST_WINDOW) return null
  // Some servers count only the tokens that were not in their cache: here, those added since the last prompt.
  if (before !== null && reported >= computeLowerBound(added) && reported <= added.high) return null
  const hasShrunk = before !== null && isExtended && reported < before * SAME_SIZE
  if (hasShrunk) return reported
  return reported < computeLowerBound(size) && reported < size.countLeast() ? reported : null
}

/** Counts of one prompt may differ by up to 2 %, for example if another machine answers at the same address. */
const SAME_SIZE = 0.98

type TruncatedEvent = Extract<TurnEvent, { readonly type: 'prompt-truncated' }>

/** Keeps to the window that a truncated prompt shows, from the next request of the turn on. Returns the event about it. */
export function learnFromTruncation(
  turn: TurnContext,
  size: PromptSizeEstimate,
  reported: number,
): TruncatedEvent {
  const { before } = size
  // The server drops whole messages, so its window may be larger than the number of tokens that it counts.
  const window = before !== null && before < 1.5 * reported ? Math.max(before, reported) : reported
  const learned = turn.host.learnWindow?.(window) ?? null
  if (learned === null) return createTruncatedEvent(size, reported, 'That window is too small to work in.')
  turn.host = { ...turn.host, ...learned }
  const rest = `From now on the context is kept below ${formatCount(window)} tokens.`
  return { ...createTruncatedEvent(size, reported, rest), window }
}

/** Returns the event about a prompt of which the server has dropped the beginning. `rest`: a sentence on what follows from it. */
export function createTruncatedEvent(
  { expected }: PromptSizeEstimate,
  reported: number,
  rest: string,
): TruncatedEvent {
  const [counted, sent] = [reported, expected].map(formatCount)
  const message = `The server dropped the beginning of the prompt without an error: it counted ${counted} of about ${sent} tokens. ${rest}`
  return { type: 'prompt-truncated', reported, expected, window: null, message }
}
