/** How a profile is made: what is given, laid over the strictest one, and checked before anything is built on it. */
import { TidemarkError } from '../errors.ts'
import type { DeepPartial } from './field.ts'
import type { Profile } from './profile.ts'
import { profileFields } from './profile-fields.ts'
import { type Problem, problem, readFields } from './read-fields.ts'

export type ProfileOverrides = DeepPartial<Profile>

/**
 * A profile with `overrides` in place of the strict values. A list is given whole. A field that is unknown or
 * wrong is refused with `bad-profile`; `details.problems` names each one.
 */
export function createProfile(overrides: ProfileOverrides = {}): Profile {
  const { value, problems } = readFields(profileFields, overrides)
  const profile = value as Profile
  const found = problems.length > 0 ? problems : contradictions(profile)
  if (found.length > 0) {
    const list = found.map(({ message }) => message).join('; ')
    throw new TidemarkError('bad-profile', `This profile cannot be used. ${list}.`, {
      details: { problems: found },
    })
  }
  return profile
}

/** What no field can say alone. */
function contradictions({ cache, thinking, sizes }: Profile): readonly Problem[] {
  const found: Problem[] = []
  const names = cache.ttls.map((ttl) => ttl.name)
  if (!names.includes(cache.defaultTtl)) {
    found.push(
      problem('cache.defaultTtl', cache.defaultTtl, `the name of one of cache.ttls (${names.join(', ')})`),
    )
  }
  if (
    cache.ttls.some(
      (ttl, index) => ttl.seconds >= (cache.ttls[index - 1]?.seconds ?? Number.POSITIVE_INFINITY),
    )
  ) {
    found.push(problem('cache.ttls', cache.ttls, 'lifetimes in order, the longest first'))
  }
  if (new Set(names).size < names.length)
    found.push(problem('cache.ttls', cache.ttls, 'a name for each lifetime'))
  if (!thinking.modes.includes(thinking.whenAbsent)) {
    found.push(problem('thinking.whenAbsent', thinking.whenAbsent, 'one of thinking.modes'))
  }
  if (sizes.manyImagePixels > sizes.imagePixels) {
    found.push(problem('sizes.manyImagePixels', sizes.manyImagePixels, 'at most sizes.imagePixels'))
  }
  return found
}

/**
 * The profile of nobody in particular: what passes under it passes nearly everywhere. It knows no window, no
 * beta and none of the features that only some providers have.
 */
export const strictProfile: Profile = createProfile()
