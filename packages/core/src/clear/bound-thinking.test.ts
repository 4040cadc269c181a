import { describe, expect, it } from 'vitest'
import { BINDING, PLAIN, Situation } from '../../test/clear/situation.ts'
import { createProfile } from '../policy/strict-profile.ts'
import { boundBehind } from './bound-thinking.ts'

const LEADING = createProfile({ thinking: { binding: 'prefix', firstInModes: ['enabled'] } })

function thinking(): Situation {
  const situation = new Situation()
  situation.reads(3, 10, { thinks: true })
  situation.teller.user('and now')
  situation.reads(2, 10, { thinks: true })
  return situation
}

describe('thinking bound to what is cleared', () => {
  it('is that of all responses behind, oldest first', () => {
    const { register } = thinking()
    const behind = (changed: number) => boundBehind({ register, profile: BINDING, mode: null, changed })
    const all = [...register.thinkers]
    expect(behind(0)).toEqual({ ok: true, responses: all.slice(1), tokens: 4 })
    expect(behind(3)).toEqual({ ok: true, responses: all.slice(4), tokens: 1 })
    expect(behind(4)).toEqual({ ok: true, responses: [], tokens: 0 })
  })

  it('is none where nothing is bound', () => {
    const { register } = thinking()
    expect(boundBehind({ register, profile: PLAIN, mode: null, changed: 0 })).toMatchObject({ responses: [] })
  })

  it('cannot go where the turn under way must begin with it', () => {
    const { register } = thinking()
    const behind = (mode: 'enabled' | 'adaptive', changed: number) =>
      boundBehind({ register, profile: LEADING, mode, changed }).ok
    expect([behind('enabled', 0), behind('adaptive', 0), behind('enabled', 3)]).toEqual([false, true, true])
  })
})
