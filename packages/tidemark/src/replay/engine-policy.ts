/** Runs Tidemark itself as a policy in a replay: a session in memory, whose responses come from the recording. */
import type { Model } from '@tidemark/core/engine/ports'
import { addReplyEvent, emptyReplyAssembly, type ReplyEvent, toReply } from '@tidemark/core/engine/reply'
import { type Block, isTextBlock } from '@tidemark/core/log/block'
import { type JsonObject, omitUndefined } from '@tidemark/core/log/json'
import type { PolicyOverrides } from '@tidemark/core/policy/create-policy'
import { listSectionTitles } from '@tidemark/core/summary/summary-prompt'
import type { Session } from '../library/session.ts'
import { createTidemark } from '../library/tidemark.ts'
import { anthropic } from '../models/anthropic.ts'
import type { PriceOverrides } from '../models/catalogue-model.ts'
import type { SessionEvent } from '../session/events.ts'
import { assistant, attachment, user } from '../session/messages.ts'
import { type BilledTokens, RELATIVE_RATES } from './billed-cache.ts'
import {
  type BilledRequest,
  createStandInText,
  hasToolCall,
  type ReplayEnvironment,
  type ReplayedAgent,
  type ReplayedInput,
  type ReplayPolicy,
  type TooLongRequest,
} from './replay-session.ts'

interface EnginePolicyOptions {
  readonly name: string
  readonly policy: PolicyOverrides
  readonly window: number
  /** Maximum tokens of a response, reserved by the policy. Default: the model's limit. */
  readonly maxOutput?: number
  /** The model whose rules apply, such as whether thinking is accepted only after the messages it was generated from. */
  readonly model?: string
  readonly rates?: PriceOverrides
}

/** Assumed output tokens of a model that writes a summary, because a replay calls no model. */
export const ASSUMED_SUMMARY_TOKENS = 3_000
/** Attachment type for texts that the recording program wrote. */
const HOST_TEXT_TYPE = 'program'
const DEFAULT_MODEL = 'claude-opus-4-6'

/** Returns Tidemark with this policy for `replaySession`. */
export function createEnginePolicy(options: EnginePolicyOptions): ReplayPolicy {
  return { name: options.name, open: (world) => openSession(world, options) }
}

async function openSession(world: ReplayEnvironment, options: EnginePolicyOptions): Promise<ReplayedAgent> {
  const { window, maxOutput, policy, model = DEFAULT_MODEL, rates = RELATIVE_RATES } = options
  const choice = anthropic(model, { apiKey: 'none', ...omitUndefined({ window, maxOutput }), prices: rates })
  const tide = createTidemark({
    model: { ...choice, connect: () => createSummarizer(world) },
    memory: true,
    policy,
    env: {},
    interactive: hasUser(world),
    history: false,
    system: createStandInText(world.session.prefixTokens),
    clock: { now: world.now, sleep: async () => {} },
    deadlines: { within: async (_, work) => ({ ok: true, value: await work({ aborted: false }) }) },
    onEvent: createRewriteCounter(world),
  })
  return new EngineAgent(await tide.open('replay'), world, model)
}

/** Returns true if a user took part: there is a second prompt. The first cache lifetime depends on this. */
function hasUser({ session: { steps } }: ReplayEnvironment): boolean {
  return steps.filter(({ isPrompt }) => isPrompt).length > 1
}

class EngineAgent implements ReplayedAgent {
  readonly #session: Session
  readonly #tools: readonly { readonly name: string; readonly input_schema: object }[]
  readonly #model: string
  #replies = 0

  constructor(session: Session, { session: { toolNames } }: ReplayEnvironment, model: string) {
    this.#session = session
    this.#tools = toolNames.map((name) => ({ name, input_schema: { type: 'object' } }))
    this.#model = model
  }

  /** Appends the input. Text that the user did not write becomes an attachment, so that notes do not quote it as the user's. */
  async appendInput({ blocks, isPrompt, userInputs }: ReplayedInput): Promise<void> {
    if (isPrompt || !blocks.every(isTextBlock))
      return void (await this.#session.append({ ...user(blocks), ...(isPrompt ? {} : { userInputs }) }))
    for (const { text } of blocks) await this.#session.append(attachment(HOST_TEXT_TYPE, text))
  }

  async buildRequest(): Promise<BilledRequest | null> {
    const request = await this.#session.next({ tools: this.#tools, settle: true })
    return request.ok ? (request.body as unknown as BilledRequest) : null
  }

  async appendReply(
    content: readonly Block[],
    { read, written, writtenForHour, input, output }: BilledTokens & { readonly output: number },
  ): Promise<void> {
    this.#replies += 1
    await this.#session.append(
      assistant({
        id: `reply_${this.#replies}`,
        model: this.#model,
        content,
        stop_reason: hasToolCall(content) ? 'tool_use' : 'end_turn',
        usage: {
          input_tokens: input,
          cache_read_input_tokens: read,
          cache_creation_input_tokens: written,
          cache_creation: {
            ephemeral_5m_input_tokens: written - writtenForHour,
            ephemeral_1h_input_tokens: writtenForHour,
          },
          output_tokens: output,
        },
      }),
    )
  }

  async makeRoom({ tokens, limit }: TooLongRequest): Promise<boolean> {
    const message = `prompt is too long: ${tokens} tokens > ${limit} maximum`
    const error = { type: 'error', error: { type: 'invalid_request_error', message } }
    const { ok } = await this.#session.refused({ status: 400, error, message })
    return ok
  }

  async close(): Promise<void> {
    await this.#session.close()
  }
}

/** Reports each clearing, and each compaction with the files that it attached and dropped. */
function createRewriteCounter({ countRewrite }: ReplayEnvironment): (event: SessionEvent) => void {
  let files = { filesKept: 0, filesShed: 0 }
  return (event) => {
    if (event.type === 'microcompact') countRewrite({ kind: 'clearing' })
    if (event.type === 'context-restored') {
      const isFile = (key: string): boolean => key.startsWith('files:')
      files = { filesKept: event.keys.filter(isFile).length, filesShed: event.shed.filter(isFile).length }
    }
    if (event.type === 'compact') {
      countRewrite({ kind: 'compaction', ...files })
      files = { filesKept: 0, filesShed: 0 }
    }
  }
}

function createStandInSummary(): string {
  const titles = listSectionTitles('full')
  const text = createStandInText(ASSUMED_SUMMARY_TOKENS / titles.length)
  const sections = titles.map((title, index) => `${index + 1}. ${title}:\n${text}`)
  return `<analysis>In order.</analysis>\n<summary>\n${sections.join('\n\n')}\n</summary>`
}

/** Creates a model for summaries. Its summaries have a usual length and contain no text of the session. */
function createSummarizer({ cache, now }: ReplayEnvironment): Model {
  let calls = 0
  const summary = createStandInSummary()
  return {
    async *stream({ payload }) {
      calls += 1
      const { read, input } = cache.billRequest(payload as unknown as BilledRequest, now(), false)
      cache.chargeOutput(ASSUMED_SUMMARY_TOKENS)
      const usage = {
        input_tokens: input,
        cache_read_input_tokens: read,
        output_tokens: ASSUMED_SUMMARY_TOKENS,
      }
      yield* streamText(`summary-${calls}`, summary, usage)
    },
  }
}

function* streamText(id: string, text: string, usage: JsonObject): Generator<ReplyEvent> {
  const block: Block = { type: 'text', text }
  const message = { id, role: 'assistant' as const, model: DEFAULT_MODEL, content: [], usage }
  const events: readonly ReplyEvent[] = [
    { type: 'reply-started', message },
    { type: 'block-started', index: 0, block },
    { type: 'block-ended', index: 0, block },
    { type: 'reply-updated', fields: { stop_reason: 'end_turn' }, usage: {} },
  ]
  const reply = toReply(events.reduce(addReplyEvent, emptyReplyAssembly))
  yield* events
  if (reply !== null) yield { type: 'reply-ended', reply }
}
