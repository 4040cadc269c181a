/** OpenAI's models. */
import type { ModelEntry } from './model-entry.ts'
import {
  FOUR_HUNDRED,
  MILLION,
  markedModel,
  modelOf,
  stepped,
  together,
  withoutWrites,
  withWrites,
} from './openai-rules.ts'

const LOW_TO_HIGH = ['low', 'medium', 'high']
const MINIMAL_TO_HIGH = ['minimal', ...LOW_TO_HIGH]
const LOW_TO_MAX = [...LOW_TO_HIGH, 'xhigh', 'max']
const NONE_TO_HIGH = ['none', ...LOW_TO_HIGH]
const NONE_TO_XHIGH = [...NONE_TO_HIGH, 'xhigh']
const NONE_TO_MAX = [...NONE_TO_XHIGH, 'max']
const NONE: readonly string[] = []

const MARKED: readonly ModelEntry[] = [
  { id: 'gpt-6.1-sol', prices: withWrites(2, 0.1, 10), efforts: LOW_TO_MAX },
  { id: 'gpt-6.1-terra', prices: withWrites(1, 0.05, 5), efforts: NONE_TO_MAX },
  { id: 'gpt-6-astra', prices: withWrites(10, 1, 50), efforts: LOW_TO_MAX },
  { id: 'gpt-6-sol', prices: withWrites(2, 0.2, 10), efforts: NONE_TO_MAX },
  { id: 'gpt-6-luna', prices: withWrites(0.1, 0.01, 0.5), efforts: NONE_TO_MAX },
  { id: 'gpt-5.6-sol', prices: withWrites(4, 0.4, 20), efforts: NONE_TO_MAX },
  { id: 'gpt-5.6-terra', prices: withWrites(2, 0.2, 12), efforts: NONE_TO_MAX },
  { id: 'gpt-5.6-luna', prices: withWrites(0.2, 0.02, 1.2), efforts: NONE_TO_MAX },
].map((row) => markedModel({ ...row, sizes: MILLION }))

const GPT_5: readonly ModelEntry[] = [
  {
    id: 'gpt-5.5',
    sizes: MILLION,
    prices: stepped(withoutWrites(5, 0.5, 30)),
    efforts: NONE_TO_XHIGH,
    isToldLater: true,
  },
  {
    id: 'gpt-5.4',
    sizes: MILLION,
    prices: stepped(withoutWrites(2.5, 0.25, 15)),
    efforts: NONE_TO_XHIGH,
    isToldLater: true,
  },
  {
    id: 'gpt-5.4-mini',
    sizes: FOUR_HUNDRED,
    prices: withoutWrites(0.75, 0.075, 4.5),
    efforts: NONE_TO_XHIGH,
    isToldLater: true,
  },
  { id: 'gpt-5.4-nano', sizes: FOUR_HUNDRED, prices: withoutWrites(0.2, 0.02, 1.25), efforts: NONE_TO_XHIGH },
  {
    id: 'gpt-5.3-codex',
    sizes: FOUR_HUNDRED,
    prices: withoutWrites(1.75, 0.175, 14),
    efforts: NONE_TO_XHIGH,
  },
  { id: 'gpt-5.2', sizes: FOUR_HUNDRED, prices: withoutWrites(1.75, 0.175, 14), efforts: NONE_TO_XHIGH },
  {
    id: 'gpt-5.1',
    aliases: ['gpt-5.1-codex'],
    sizes: FOUR_HUNDRED,
    prices: withoutWrites(1.25, 0.125, 10),
    efforts: NONE_TO_HIGH,
  },
  {
    id: 'gpt-5',
    aliases: ['gpt-5-codex'],
    sizes: FOUR_HUNDRED,
    prices: withoutWrites(1.25, 0.125, 10),
    efforts: MINIMAL_TO_HIGH,
  },
  { id: 'gpt-5-mini', sizes: FOUR_HUNDRED, prices: withoutWrites(0.25, 0.025, 2), efforts: MINIMAL_TO_HIGH },
  {
    id: 'gpt-5-nano',
    sizes: FOUR_HUNDRED,
    prices: withoutWrites(0.05, 0.005, 0.4),
    efforts: MINIMAL_TO_HIGH,
  },
].map(modelOf)

const OLDER: readonly ModelEntry[] = [
  { id: 'gpt-4.1', sizes: together(1_047_576, 32_768), prices: withoutWrites(2, 0.5, 8), efforts: NONE },
  {
    id: 'gpt-4.1-mini',
    sizes: together(1_047_576, 32_768),
    prices: withoutWrites(0.4, 0.1, 1.6),
    efforts: NONE,
  },
  {
    id: 'gpt-4.1-nano',
    sizes: together(1_047_576, 32_768),
    prices: withoutWrites(0.1, 0.025, 0.4),
    efforts: NONE,
  },
  { id: 'gpt-4o', sizes: together(128_000, 16_384), prices: withoutWrites(2.5, 1.25, 10), efforts: NONE },
  // Its cached input has no discount.
  {
    id: 'gpt-4o-2024-05-13',
    sizes: together(128_000, 4_096),
    prices: withoutWrites(5, 5, 15),
    efforts: NONE,
  },
  {
    id: 'gpt-4o-mini',
    sizes: together(128_000, 16_384),
    prices: withoutWrites(0.15, 0.075, 0.6),
    efforts: NONE,
  },
  { id: 'o3', sizes: together(200_000, 100_000), prices: withoutWrites(2, 0.5, 8), efforts: LOW_TO_HIGH },
  {
    id: 'o4-mini',
    sizes: together(200_000, 100_000),
    prices: withoutWrites(1.1, 0.275, 4.4),
    efforts: LOW_TO_HIGH,
  },
].map(modelOf)

export const OPENAI_MODELS: readonly ModelEntry[] = [...MARKED, ...GPT_5, ...OLDER]
