import { type FoundModel, lookUpModel, modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { expect, it } from 'vitest'
import { detectContextWindow, type WindowEvidence } from './context-curve.ts'
import type { LoggedCompaction } from './report.ts'

function model(id: string): FoundModel {
  const found = lookUpModel(modelCatalogue, id)
  if (!found.found) throw new Error(`${id} is not in the catalogue`)
  return found
}

function createCompaction(trigger: string, preTokens: number | null): LoggedCompaction {
  return {
    id: null,
    costUsd: null,
    trigger,
    preTokens,
    postTokens: null,
    at: null,
    afterCall: 1,
    isUndone: false,
  }
}

const nothing: WindowEvidence = { format: 'claude-code', logged: null, model: null, compactions: [], peak: 0 }
const opus = { ...nothing, model: model('claude-opus-4-6') }

it.each<[string, WindowEvidence, ReturnType<typeof detectContextWindow>]>([
  ['nothing is known', nothing, { window: null, windowFrom: null, autoCompact: null }],
  ['the catalogue has the model', opus, { window: 1_000_000, windowFrom: 'catalogue', autoCompact: 967_000 }],
  [
    "an automatic compaction below the model's window shows a smaller window",
    { ...opus, peak: 166_919, compactions: [createCompaction('auto', 167_471)] },
    { window: 200_000, windowFrom: 'compactions', autoCompact: 167_000 },
  ],
  [
    'a compaction that the user asked for shows nothing',
    {
      ...opus,
      peak: 150_000,
      compactions: [createCompaction('manual', 150_000), createCompaction('auto', null)],
    },
    { window: 1_000_000, windowFrom: 'catalogue', autoCompact: 967_000 },
  ],
  [
    'a request larger than the smaller window rules it out',
    { ...opus, peak: 240_000, compactions: [createCompaction('auto', 167_471)] },
    { window: 1_000_000, windowFrom: 'catalogue', autoCompact: 967_000 },
  ],
  [
    'a request larger than the usual window shows the long one',
    { ...nothing, model: model('claude-sonnet-4-5'), peak: 300_000 },
    { window: 1_000_000, windowFrom: 'catalogue', autoCompact: 967_000 },
  ],
  [
    'a request larger than any window of the model leaves it unknown',
    { ...nothing, model: model('claude-opus-4-5'), peak: 300_000 },
    { window: null, windowFrom: null, autoCompact: null },
  ],
  [
    'the log records it, and Codex has another threshold',
    { ...nothing, format: 'codex', logged: 258_400 },
    { window: 258_400, windowFrom: 'log', autoCompact: null },
  ],
  [
    'an automatic compaction of our own session shows no smaller window',
    { ...opus, format: 'tidemark', peak: 166_919, compactions: [createCompaction('auto', 167_471)] },
    { window: 1_000_000, windowFrom: 'catalogue', autoCompact: 967_000 },
  ],
  [
    'our own session records it',
    { ...opus, format: 'tidemark', logged: 32_000, peak: 20_000 },
    { window: 32_000, windowFrom: 'log', autoCompact: 21_920 },
  ],
  [
    'a session that went on with a smaller window has that one, though an earlier request was larger',
    { ...opus, format: 'tidemark', logged: 32_000, peak: 150_000 },
    { window: 32_000, windowFrom: 'log', autoCompact: 21_920 },
  ],
  [
    'an automatic compaction far below the usual window shows a setting of the host, not a window',
    { ...opus, peak: 67_000, compactions: [createCompaction('auto', 67_471)] },
    { window: 1_000_000, windowFrom: 'catalogue', autoCompact: 967_000 },
  ],
  [
    'a window too small for any policy has no threshold',
    { ...nothing, logged: 12 },
    { window: 12, windowFrom: 'log', autoCompact: null },
  ],
])('%s', (_what, clues, expected) => {
  expect(detectContextWindow(clues)).toEqual(expected)
})
