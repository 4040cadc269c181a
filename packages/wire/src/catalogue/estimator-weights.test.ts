import type { Block } from '@tidemark/core/log/block'
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import { createDefaultWeights, createEstimator, type EstimatorWeights } from '@tidemark/core/tokens/estimator'
import { describe, expect, it } from 'vitest'
import { FITTED_CONSTANTS } from './estimator-constants.ts'
import { createEstimatorWeights } from './estimator-weights.ts'
import type { TokenizerFamily } from './model-entry.ts'

const policy = DEFAULT_POLICY.estimate
const FAMILIES: readonly (TokenizerFamily | null)[] = [
  'claude-to-4.6',
  'claude-from-4.7',
  'openai',
  'gemini',
  null,
]

const CODE = `export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
`.repeat(40)

const tokens = (family: TokenizerFamily | null, block: Block): number =>
  createEstimator(createEstimatorWeights(family, policy)).block(block)

const charactersPerToken = (family: TokenizerFamily | null, block: Block): number =>
  CODE.length / tokens(family, block)

const text: Block = { type: 'text', text: CODE }
const result: Block = { type: 'tool_result', tool_use_id: 'c', content: CODE }

function numbersIn(value: unknown): readonly number[] {
  if (typeof value === 'number') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(numbersIn) : []
}

describe('estimatorWeights', () => {
  it.each(FAMILIES)(
    '%s: no weight of text is negative, so no figure falls when text is appended',
    (family) => {
      const weights: EstimatorWeights = createEstimatorWeights(family, policy)
      const texts = numbersIn([weights.text, weights.toolInput, weights.toolResult])
      expect(texts.every((weight) => weight >= 0)).toBe(true)
      expect(texts.some((weight) => weight > 0)).toBe(true)
    },
  )

  it('takes the flat figures from the policy', () => {
    const own = { ...policy, imageTokens: 7, documentTokens: 9 }
    for (const family of FAMILIES) {
      const weights = createEstimatorWeights(family, own)
      expect([weights.image.flat, weights.document]).toEqual([7, 9])
    }
  })

  it('falls back to the fixed rule', () => {
    expect(createEstimatorWeights(null, policy)).toEqual(createDefaultWeights(policy))
    expect(createEstimatorWeights('gemini', policy)).toEqual(createDefaultWeights(policy))
    expect(charactersPerToken(null, text)).toBeCloseTo(4, 1)
  })

  it('makes more tokens of code than the fixed rule, and the newer tokenizer more again', () => {
    const older = charactersPerToken('claude-to-4.6', text)
    expect(older).toBeGreaterThan(2.5)
    expect(older).toBeLessThan(3.8)
    expect(older / charactersPerToken('claude-from-4.7', text)).toBeCloseTo(1.3, 1)
    expect(older / charactersPerToken('claude-from-4.7', result)).toBeCloseTo(1.38, 1)
    expect(charactersPerToken('openai', text)).toBeGreaterThan(older)
  })

  it('does not take other scripts for a few tokens', () => {
    const script = (sample: string): number =>
      tokens('claude-to-4.6', { type: 'text', text: sample.repeat(100) })
    expect(script('漢字')).toBeGreaterThan(200)
    expect(script('слово ')).toBeGreaterThan(150)
    expect(script('Zm9v8Qx1')).toBeGreaterThan(300)
  })

  it('counts hidden thinking by its signature, about a token for five characters', () => {
    const hidden: Block = { type: 'thinking', thinking: '', signature: 's'.repeat(5_000) }
    const older = tokens('claude-to-4.6', hidden)
    expect(Math.abs(older - 965)).toBeLessThan(40)
    expect(tokens('claude-from-4.7', hidden)).toBeGreaterThan(older)
  })
})

describe('the fitted constants', () => {
  it('are near what others measured', () => {
    expect(Math.abs(FITTED_CONSTANTS.perSignatureCharacter - 0.205)).toBeLessThan(0.02)
    expect(Math.abs(FITTED_CONSTANTS.start.scale - 1)).toBeLessThan(0.1)
  })
})
