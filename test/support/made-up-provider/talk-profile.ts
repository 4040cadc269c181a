/** The rules of the made-up provider: a cache of its own that is read in steps, sealed items, and no edits of the context. */
import type { JsonObject } from '@tidemark/core/log/json'
import { defineProviderProfile, type ProviderProfile } from '@tidemark/core/policy/provider-profile'
import type { ProviderSpelling } from '@tidemark/core/policy/provider-spelling'
import { VENDOR } from './words.ts'

export const CACHE_STEP = 64
export const CACHE_MINIMUM = 256
const LIFETIME_SECONDS = 7_200

/** An act that the profile does not have. */
function refuse(act: string): never {
  throw new Error(`The made-up provider cannot ${act}, and its profile says so.`)
}

const talkSpelling: ProviderSpelling<ProviderProfile> = {
  settings: ({ maxOutput, effort }) => ({
    ceiling: maxOutput,
    ...(effort === undefined ? {} : { zeal: effort }),
  }),
  readSettings: ({ ceiling }) => ({
    maxOutput: typeof ceiling === 'number' ? ceiling : null,
    thinkingMode: undefined,
  }),
  limitOutput: (parameters, most) =>
    typeof parameters.ceiling === 'number' && parameters.ceiling > most
      ? { ...parameters, ceiling: most }
      : parameters,
  findCacheLevel: (parameter) => (parameter === 'engine' ? 'tools' : null),
  readCacheParameters: () => ({}),
  editsParameter: 'redactions',
  requestEdits: () => ({}),
  changeKept: () => ({}),
  readEdits: () => null,
  askDiagnosis: () => ({}),
  readDiagnosis: () => null,
  spellMarker: () => refuse('mark a prefix'),
  readMarker: () => ({ ttl: null }),
  deleteResults: () => refuse('delete results from its cache'),
  addReference: (block) => block,
  requestSummary: (): { parameters: JsonObject; extra: JsonObject } => refuse('write summaries'),
  checks: {
    start: null,
    checkMessage: (state) => state,
    finish: (_state, { raw: { ceiling } }, _end, { profile, report }) => {
      if (typeof ceiling !== 'number' && profile.maxOutputRequired) report('ceiling', 'ceiling')
    },
    summaryParameter: null,
  },
}

/** `account`: the one whose sealed items are taken. */
export function createTalkProfile(window: number, maxOutput: number, account: string): ProviderProfile {
  return defineProviderProfile({
    name: 'the made-up provider',
    origin: { vendor: VENDOR, account },
    window,
    maxOutput,
    roles: { first: 'user', consecutive: 'refused', prefill: 'refused', system: 'refused' },
    thinking: {
      modes: ['adaptive'],
      whenAbsent: 'adaptive',
      signed: false,
      binding: 'none',
      closing: 'not-at-end',
      firstInModes: [],
      unforcedInModes: [],
    },
    cache: {
      kind: 'prefix',
      stepTokens: CACHE_STEP,
      softSeconds: null,
      maxMarkers: 0,
      ttls: [{ name: 'while', seconds: LIFETIME_SECONDS }],
      defaultTtl: 'while',
      unmarkable: [],
      minimumTokens: CACHE_MINIMUM,
    },
    spelling: talkSpelling,
  })
}
