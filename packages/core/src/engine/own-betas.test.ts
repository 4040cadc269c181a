import { describe, expect, it } from 'vitest'
import { createPolicy } from '../policy/create-policy.ts'
import { createProfile } from '../policy/strict-profile.ts'
import { namesEditBetas, withOwnBetas } from './own-betas.ts'

const EDITS = { clearThinking: 'clear_thinking', clearToolUses: 'clear_results' }
const BETAS = [
  { where: 'edit' as const, name: 'clear_results', betas: ['edits-2025', 'edits-2026'] },
  { where: 'edit' as const, name: 'clear_thinking', betas: ['edits-2025'] },
  { where: 'edit' as const, name: 'compact', betas: ['compact-2026'] },
]
const BOUND = createProfile({ thinking: { binding: 'prefix' }, contextEdits: EDITS, betas: BETAS })
const PLAIN = createProfile({ thinking: { binding: 'none' }, contextEdits: EDITS, betas: BETAS })
const POLICY = createPolicy({})

describe('betas for edits by the provider', () => {
  it.each([
    ['are named where thinking is bound', BOUND, POLICY, {}, ['edits-2025']],
    ['beside those of the host', BOUND, POLICY, { betas: ['other'] }, ['other', 'edits-2025']],
    ['and not twice', BOUND, POLICY, { betas: ['edits-2025'] }, ['edits-2025']],
    ['nor where nothing asks for them', PLAIN, POLICY, {}, undefined],
    [
      'but where the policy has no other way',
      PLAIN,
      createPolicy({ clear: { ways: ['native'] } }),
      {},
      ['edits-2025'],
    ],
    [
      'nor where the policy has other ways alone',
      BOUND,
      createPolicy({ clear: { ways: ['budget'] } }),
      {},
      undefined,
    ],
  ])('%s', (_, profile, policy, parameters, betas) => {
    const named = withOwnBetas(parameters, { profile, policy })
    expect(named.betas).toEqual(betas)
    expect(namesEditBetas(named, profile)).toBe(betas !== undefined)
  })

  it('are not missed where the provider wants none', () => {
    expect(namesEditBetas({}, createProfile({ contextEdits: EDITS, betas: [] }))).toBe(true)
  })
})
