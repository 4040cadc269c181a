/** The made-up provider as a model of a session, with its server. */
import { createDefaultWeights } from '@tidemark/core/tokens/estimator'
import { type Coder, createCoder, type Script, withSummaries } from '@tidemark/simulator'
import type { ModelChoice, RunOptions } from 'tidemark'
import { createHttpModel } from 'tidemark/internal'
import { talkCodec } from './talk-codec.ts'
import { createTalkProfile } from './talk-profile.ts'
import { createTalkServer, PRICES, type TalkServer } from './talk-server.ts'

export const ENGINE = 'lumen-2'

export interface MadeUpOptions {
  readonly window?: number
  readonly turns?: number
  readonly resultTokens?: number
  readonly script?: Script
}

export interface MadeUpWorld {
  readonly server: TalkServer
  readonly coder: Coder
  /** The coder's tools, as `run` takes them. */
  readonly tools: RunOptions
  /** Returns the model as an account calls it. */
  readonly choose: (account?: string) => ModelChoice
}

export function createMadeUpWorld(options: MadeUpOptions = {}): MadeUpWorld {
  const { window = 20_000, turns = 6, resultTokens = 300 } = options
  const coder = createCoder({ turns, resultTokens, thinkingTokens: 20 })
  const server = createTalkServer({ script: options.script ?? withSummaries(coder.script), window })
  return {
    server,
    coder,
    tools: { tools: coder.tools, runTool: (call) => String(coder.toolResult(call).content) },
    choose: (account = 'north') => chooseMadeUpModel(server.fetch, window, account),
  }
}

export function chooseMadeUpModel(
  fetch: typeof globalThis.fetch,
  window: number,
  account = 'north',
): ModelChoice {
  const maxOutput = 1_000
  return {
    id: ENGINE,
    profile: createTalkProfile(window, maxOutput, account),
    window,
    maxOutput,
    priceList: (model) =>
      model === ENGINE
        ? {
            input: PRICES.fresh,
            cacheRead: PRICES.recalled,
            writeShort: null,
            writeLong: null,
            output: PRICES.spoken,
          }
        : null,
    weights: createDefaultWeights,
    hasTokenizerOf: (model) => model === ENGINE,
    codec: talkCodec,
    connect: ({ session: _, ...settings }) =>
      createHttpModel({
        codec: talkCodec,
        credentials: { style: 'key', secret: account },
        fetch,
        ...settings,
      }),
    parameters: {},
    notes: [],
  }
}
