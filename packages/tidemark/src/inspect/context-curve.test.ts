import { type FoundModel, lookUpModel, modelCatalogue } from '@tidemark/wire'
import { expect, it } from 'vitest'
import { type WindowClues, windowOf } from './context-curve.ts'
import type { CompactionFound } from './report.ts'

function model(id: string): FoundModel {
  const found = lookUpModel(modelCatalogue, id)
  if (!found.found) throw new Error(`${id} is not in the catalogue`)
  return found
}

function compacted(trigger: string, preTokens: number | null): CompactionFound {
  return { trigger, preTokens, postTokens: null, at: null, afterCall: 1 }
}

const nothing: WindowClues = { format: 'claude-code', logged: null, model: null, compactions: [], peak: 0 }
const opus = { ...nothing, model: model('claude-opus-4-6') }

it.each<[string, WindowClues, ReturnType<typeof windowOf>]>([
  ['nobody says', nothing, { window: null, windowFrom: null, autoCompact: null }],
  ['the catalogue', opus, { window: 1_000_000, windowFrom: 'catalogue', autoCompact: 967_000 }],
  [
    'where the host compacted by itself',
    { ...opus, peak: 166_919, compactions: [compacted('auto', 167_471)] },
    { window: 200_000, windowFrom: 'compactions', autoCompact: 167_000 },
  ],
  [
    'a compaction that the person asked for tells nothing',
    { ...opus, peak: 150_000, compactions: [compacted('manual', 150_000), compacted('auto', null)] },
    { window: 1_000_000, windowFrom: 'catalogue', autoCompact: 967_000 },
  ],
  [
    'more was sent than the smaller window holds',
    { ...opus, peak: 240_000, compactions: [compacted('auto', 167_471)] },
    { window: 1_000_000, windowFrom: 'catalogue', autoCompact: 967_000 },
  ],
  [
    'the longer window of the same model',
    { ...nothing, model: model('claude-sonnet-4-5'), peak: 300_000 },
    { window: 1_000_000, windowFrom: 'catalogue', autoCompact: 967_000 },
  ],
  [
    'more was sent than any window of the model holds',
    { ...nothing, model: model('claude-opus-4-5'), peak: 300_000 },
    { window: null, windowFrom: null, autoCompact: null },
  ],
  [
    'the log itself, and Codex draws its own line',
    { ...nothing, format: 'codex', logged: 258_400 },
    { window: 258_400, windowFrom: 'log', autoCompact: null },
  ],
  [
    'a window that nothing works in',
    { ...nothing, logged: 12 },
    { window: 12, windowFrom: 'log', autoCompact: null },
  ],
])('%s', (_what, clues, expected) => {
  expect(windowOf(clues)).toEqual(expected)
})
