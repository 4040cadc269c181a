/** What happened, in a clause, for each reason. */
import { countText, durationText } from './figures-in-words.ts'
import type { Difference, MessageDifference, ProviderZone, Reason } from './reason.ts'
import type { Hand } from './sent.ts'

export function factOf(reason: Reason): string {
  switch (reason.kind) {
    case 'expired':
      return `${durationText(reason.gapMs)} went by since the request before, and an entry lives ${reason.ttl}`
    case 'look-back-outrun':
      return `the turn added more than the ${reason.lookBack} positions a marker looks back`
    case 'told-by-provider':
      return `the provider says that ${PROVIDER_ZONES[reason.zone]} changed, and nothing we sent did`
    case 'evicted':
      return 'nothing in the request changed and the entry should still live: it was lost on the side of the provider'
    default:
      return differenceFact(reason)
  }
}

const PROVIDER_ZONES: Readonly<Record<ProviderZone, string>> = {
  model: 'the model or its speed',
  tools: 'the tools',
  system: 'the system prompt',
  messages: 'the messages',
  other: 'another parameter',
}

const PLAIN = {
  'model-changed': 'the model',
  'speed-changed': 'the speed',
  'effort-changed': 'the effort',
  'thinking-changed': 'the thinking settings',
  'tool-choice-changed': 'tool_choice',
} as const

function differenceFact(difference: Difference): string {
  switch (difference.kind) {
    case 'model-changed':
    case 'speed-changed':
    case 'effort-changed':
    case 'thinking-changed':
    case 'tool-choice-changed':
      return `${PLAIN[difference.kind]} changed${fromTo(difference)}`
    case 'parameter-changed':
      return `parameter ${difference.name} changed${fromTo(difference)}`
    case 'betas-changed':
      return `the betas changed${signed(difference.added, difference.removed)}`
    case 'tools-added':
      return `tools were added (${listed(difference.names)})`
    case 'tools-removed':
      return `tools were removed (${listed(difference.names)})`
    case 'tools-reordered':
      return `the order of the tools changed (${listed(difference.names)})`
    case 'sections-added':
      return `sections were added to the system prompt (${listed(difference.names)})`
    case 'sections-removed':
      return `sections were taken out of the system prompt (${listed(difference.names)})`
    case 'sections-reordered':
      return `the order of the system prompt's sections changed (${listed(difference.names)})`
    case 'tool-changed':
      return `the definition of tool ${difference.name} changed (${characters(difference.characters)})`
    case 'section-changed':
      return `section ${difference.name} of the system prompt changed (${characters(difference.characters)})`
    case 'marker-ttl-changed':
      return `the lifetime asked for in ${difference.zone} changed${fromTo(difference)}`
    case 'marker-scope-changed':
      return `the scope of the marker in ${difference.zone} changed${fromTo(difference)}`
    case 'markers-removed':
      return difference.zone === 'messages'
        ? 'no message is marked for the cache any more'
        : 'neither tools nor system prompt are marked for the cache any more'
    case 'image-added':
      return `message ${difference.index} brought the first image`
    case 'image-removed':
      return `the last image, in message ${difference.index}, is gone`
    default:
      return messageFact(difference)
  }
}

const MESSAGE_VERBS: Readonly<Record<MessageDifference['kind'], string>> = {
  'message-changed': 'was rewritten',
  'message-removed': 'was taken out',
  'message-inserted': 'was put between others',
}

const HANDS: Readonly<Record<Hand, string>> = {
  clearing: ' by a clearing',
  compaction: ' by a compaction',
  hook: ' by a hook',
  host: ' by the host',
  unknown: '',
}

function messageFact({ kind, index, origin, by, characters: count }: MessageDifference): string {
  const record = origin === null || origin === '' ? '' : `, record ${origin},`
  return `message ${index}${record} ${MESSAGE_VERBS[kind]}${HANDS[by]} (${characters(count)})`
}

function fromTo({
  before,
  after,
}: {
  readonly before: string | null
  readonly after: string | null
}): string {
  return ` (${short(before)} → ${short(after)})`
}

function short(text: string | null): string {
  if (text === null) return 'not set'
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}

const MOST_NAMES = 5

function listed(names: readonly string[]): string {
  const more = names.length - MOST_NAMES
  return names.slice(0, MOST_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

function signed(added: readonly string[], removed: readonly string[]): string {
  return ` (${[...added.map((name) => `+${name}`), ...removed.map((name) => `−${name}`)].join(', ')})`
}

function characters(count: number): string {
  if (count === 0) return 'same length'
  const many = Math.abs(count)
  return `${count > 0 ? '+' : '−'}${countText(many)} ${many === 1 ? 'character' : 'characters'}`
}
