import { describe, expect, it } from 'vitest'
import { createPolicy } from './create-policy.ts'
import { presets } from './presets.ts'
import { computeScaledLimits } from './scale-policy.ts'

describe('the preset claude-code-like keeps the original rule set in every figure', () => {
  const policy = createPolicy(presets['claude-code-like'])
  const scaled = computeScaledLimits(policy, { window: 200_000, maxOutput: 64_000 })
  if (!scaled.known) throw new Error(scaled.why)

  it('compacts from 167,000 tokens of a window of 200,000 on, to half of that', () => {
    const { autoCompact, target } = scaled.lines
    expect({ autoCompact, target }).toEqual({ autoCompact: 167_000, target: 83_500 })
    expect(policy.compact.target).toMatchObject({ percentOfAutoCompact: 50, countsPrefix: true })
  })

  it('attaches the five newest files, 5,000 tokens of each and 50,000 together', () => {
    const { count, eachTokens, middleTokens, lastTokens, totalTokens } = policy.rehydrate.files
    expect([count, eachTokens, middleTokens, lastTokens, totalTokens]).toEqual([
      5, 5_000, 5_000, 5_000, 50_000,
    ])
  })

  it('keeps 10,000 to 40,000 tokens of the newest messages', () => {
    const { minimumTokens, maximumTokens } = policy.notes.kept
    expect({ minimumTokens, maximumTokens }).toEqual({ minimumTokens: 10_000, maximumTokens: 40_000 })
  })

  it('gives the notes 2,000 tokens a section and 12,000 in all, and no share of their own to decisions', () => {
    const { sectionTokens, decisionTokens, totalTokens } = policy.notes
    expect([sectionTokens, decisionTokens, totalTokens]).toEqual([2_000, 0, 12_000])
  })

  it('clears the newest reads as well, and has no line and no choice of files of its own under a client', () => {
    expect(policy.clear.keptFiles).toBe(0)
    expect(policy.dropIn).toMatchObject({
      notesLine: { enabled: false },
      leastUsePercent: 0,
      notesTokens: 12_000,
    })
  })

  it('has no earlier line for compactions with notes, and so compacts nothing when the cache is cold', () => {
    expect(policy.compact.notesLine.enabled).toBe(false)
  })
})

it.each(Object.entries(presets))('the preset %s is a valid policy', (_, preset) => {
  expect(() => createPolicy(preset)).not.toThrow()
})

it('the preset nothing clears, summarizes and notes nothing', () => {
  const { switches, notes, clear } = createPolicy(presets.nothing)
  expect([switches.autoCompactEnabled, switches.microcompactEnabled, notes.enabled, clear.ways]).toEqual([
    false,
    false,
    false,
    [],
  ])
})
