/** What can be done about it, in a sentence, for each reason: only what is certain to help. */
import type { Reason } from './reason.ts'

const KEEP_PARAMETERS = 'Keep it the same for the session, or change it right after a compaction.'
const KEEP_TOOLS = 'Connect tools before the first prompt, or let late ones come with the next epoch.'
const KEEP_SECTIONS = 'Append what changes as a delta; the system prompt takes it over with the next epoch.'
const KEEP_MARKERS = 'Ask for the same lifetime and scope throughout a session.'
const KEEP_MESSAGES = 'Leave what was sent as it is: add to the end, or clear in batches.'

const HOUR_MS = 3_600_000

/** An hour's life is named only where it would have outlasted the pause; whether it pays is for the gaps to say. */
export function adviceFor(reason: Reason): string {
  const isOutlasted = reason.kind === 'expired' && reason.ttl === '5m' && reason.gapMs < HOUR_MS
  return isOutlasted ? LONGER_LIFE : ADVICE[reason.kind]
}

const LONGER_LIFE =
  'An hour would have outlasted the pause, at dearer writes: cache.ttl "auto" weighs that by the gaps of the session.'

const ADVICE: Readonly<Record<Reason['kind'], string>> = {
  'model-changed': 'Each model has a cache of its own: switch right after a compaction.',
  'speed-changed': KEEP_PARAMETERS,
  'effort-changed': KEEP_PARAMETERS,
  'thinking-changed': KEEP_PARAMETERS,
  'tool-choice-changed': 'Deny tools locally; tool_choice alone misses the cache of all messages.',
  'betas-changed': KEEP_PARAMETERS,
  'parameter-changed': KEEP_PARAMETERS,
  'tools-added': KEEP_TOOLS,
  'tools-removed': 'Deny a tool locally and leave its definition where it is.',
  'tools-reordered': 'Send the tools in a fixed order.',
  'tool-changed':
    'Hold definitions fixed for the epoch; a server that rewrites its schema breaks the cache each time.',
  'sections-added': KEEP_SECTIONS,
  'sections-removed': KEEP_SECTIONS,
  'sections-reordered': 'Send the sections in a fixed order.',
  'section-changed': KEEP_SECTIONS,
  'marker-ttl-changed': KEEP_MARKERS,
  'marker-scope-changed': KEEP_MARKERS,
  'markers-removed': 'Mark the request again, or switch caching off for the whole session.',
  'image-added': 'Where images are to come, one at the start costs less than one late.',
  'image-removed': 'Leave one image in place until the next compaction.',
  'message-changed': KEEP_MESSAGES,
  'message-removed': KEEP_MESSAGES,
  'message-inserted': KEEP_MESSAGES,
  expired: 'After such a pause all is written again: clear or compact before the next prompt.',
  'look-back-outrun': 'A lagging marker keeps such turns within reach.',
  'told-by-provider': 'Look at what stands between us and the provider: a gateway, a proxy, another client.',
  evicted: 'Nothing to do here; where it happens often, ask the provider.',
}
