/** Rewrites and other marks in a log, said to a person: what was summarised, cleared, taken back. */
import type { SystemRecord } from '../../conversation/record.ts'
import type { Entry } from '../../view/entry.ts'
import { isShown } from '../../view/parts.ts'
import type { Act, View } from '../../view/view.ts'
import { figure, quoted } from './writing.ts'

/** Null for marks that say nothing to a person. */
export function actMarkdown(record: SystemRecord, view: View): string | null {
  const text = wordsFor(record, view)
  return text === null ? null : `---\n\n${quoted(`${text} · \`${record.uuid}\``)}`
}

function wordsFor(record: SystemRecord, view: View): string | null {
  const act = [...view.acts, ...view.undone].find(({ uuid }) => uuid === record.uuid)
  switch (record.subtype) {
    case 'compact_boundary':
      return compactWords(record, act)
    case 'microcompact_boundary':
      return clearWords(record)
    case 'compact_undone':
      return `**Compaction \`${record.of}\` was undone**: the model is shown again what it had replaced.`
    case 'clear_undone':
      return `**Clearing \`${record.of}\` was undone**: the model is shown again what it had taken out.`
    case 'epoch':
      return `From here on the model is **${record.epoch?.model ?? 'not named'}**, with ${record.epoch?.tools?.length ?? 0} tools.`
    case 'delta':
    case 'pin':
      return null
    default:
      return typeof record.content === 'string' && record.content.trim() !== '' ? record.content : null
  }
}

function compactWords({ compactMetadata: metadata }: SystemRecord, act: Act | undefined): string {
  const why = [
    metadata?.trigger,
    metadata?.cause,
    metadata?.summarizer && `summary by ${metadata.summarizer}`,
  ]
  const said = why.filter((word) => typeof word === 'string' && word !== '').join(', ')
  return `**Compacted**${said === '' ? '' : ` (${said})`}${sizes(metadata)}. ${summarisedWords(metadata, act)}`
}

function sizes(metadata: SystemRecord['compactMetadata']): string {
  const { preTokens, postTokens } = metadata ?? {}
  if (typeof preTokens !== 'number') return ''
  const after = typeof postTokens === 'number' ? ` to ${figure(postTokens)}` : ''
  return `, from ${figure(preTokens)}${after} tokens`
}

function summarisedWords(metadata: SystemRecord['compactMetadata'], act: Act | undefined): string {
  const kept = new Set([
    ...(metadata?.preservedMessages?.uuids ?? []),
    ...(metadata?.unansweredMessages?.uuids ?? []),
  ])
  const shown = act === undefined ? [] : [...act.before].filter(isShown)
  const gone = shown.filter(({ record }) => !kept.has(record.uuid))
  const [first, last] = [gone.at(0), gone.at(-1)]
  if (first === undefined || last === undefined) return 'A summary stands for what came before.'
  const stayed = kept.size === 0 ? '' : ` ${figure(kept.size)} were kept word for word.`
  return `A summary stands for ${figure(gone.length)} records, ${span(first, last)}.${stayed} All of them are in this document.`
}

function span(first: Entry, last: Entry): string {
  return `\`${first.record.uuid}\` to \`${last.record.uuid}\``
}

function clearWords({ microcompactMetadata: metadata }: SystemRecord): string {
  const results = Array.isArray(metadata?.compactedToolIds) ? metadata.compactedToolIds : []
  const inputs = Array.isArray(metadata?.clearedInputs) ? metadata.clearedInputs : []
  const ids = [...results, ...inputs.map(({ toolUseId }) => toolUseId)].map((id) => `\`${id}\``).join(', ')
  const freed =
    typeof metadata?.tokensSaved === 'number' ? `, ${figure(metadata.tokensSaved)} tokens freed` : ''
  const media = Array.isArray(metadata?.clearedMedia) ? metadata.clearedMedia.length : 0
  const isMedia = media > 0 && results.length + inputs.length === 0
  const texts = `${figure(results.length)} tool results${inputs.length === 0 ? '' : ` and ${figure(inputs.length)} inputs`}`
  const what = isMedia ? `${figure(media)} images and documents` : texts
  return `**Cleared** ${what} from what the model is shown${freed}${ids === '' ? '' : `: ${ids}`}. They are in this document in full.`
}
