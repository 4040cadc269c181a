/** What every provider's profile takes from the catalogue in the same way. */
import type { ProfileOverrides } from '@tidemark/core'
import type { ModelEntry, ThinkingMode, Ttl } from '../catalogue/model-entry.ts'

type Part<Key extends keyof ProfileOverrides> = NonNullable<ProfileOverrides[Key]>

/** The window is what a prompt may fill: where a provider sets room for the answer aside, that room is not in it. */
export function windowOf({
  window,
  maxInput,
  maxOutput,
}: ModelEntry): Pick<ProfileOverrides, 'window' | 'maxOutput'> {
  const known = [window, maxInput].filter((size) => size !== null)
  return { window: known.length === 0 ? null : Math.min(...known), maxOutput }
}

const ORDER = ['low', 'medium', 'high', 'xhigh', 'max']

/** A model that cannot think is one that only knows `disabled`. What is not known is left to the strict profile. */
export function thinkingOf({ thinking }: ModelEntry): Part<'thinking'> {
  const { binding, keepsPrior, leastUpTo } = thinking
  const modes: readonly ThinkingMode[] | null = thinking.modes?.length === 0 ? ['disabled'] : thinking.modes
  const isLimited = leastUpTo !== undefined && modes?.includes('disabled') === true
  return {
    ...(modes === null ? {} : { modes, whenAbsent: whenAbsent(modes, thinking.isOnByDefault) }),
    ...(isLimited ? { disabledEfforts: ORDER.slice(0, ORDER.indexOf(leastUpTo) + 1) } : {}),
    ...(binding === null ? {} : { binding }),
    stripsFinishedTurns: keepsPrior === false,
  }
}

function whenAbsent(modes: readonly ThinkingMode[], isOn: boolean | null): ThinkingMode {
  const off = modes.includes('disabled') && isOn !== true
  return off ? 'disabled' : (modes.find((mode) => mode !== 'disabled') ?? 'disabled')
}

/** No limit is written as the largest number: a profile is JSON. */
export function cacheOf({ cache }: ModelEntry): Part<'cache'> {
  const { minimum, markers, lookBack, ttls } = cache
  const positions = lookBack === 'unlimited' ? Number.MAX_SAFE_INTEGER : lookBack
  return {
    minimumTokens: minimum,
    ...(markers === null ? {} : { maxMarkers: markers }),
    ...(positions === null ? {} : { lookBack: positions }),
    ...(ttls === null || ttls[0] === undefined ? {} : { ttls: longestFirst(ttls), defaultTtl: ttls[0].name }),
  }
}

function longestFirst(ttls: readonly Ttl[]): readonly Ttl[] {
  return ttls.toSorted((a, b) => b.seconds - a.seconds)
}

export function sizesOf({ limits }: ModelEntry): Part<'sizes'> {
  const { bodyBytes, images } = limits
  return { ...(bodyBytes === null ? {} : { bodyBytes }), ...(images === null ? {} : { images }) }
}
