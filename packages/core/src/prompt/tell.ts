/** How the model is told of a change within an epoch. The texts are functions of the change alone. */
import type { Block } from '../conversation/block.ts'
import type { JsonObject } from '../conversation/json.ts'
import type {
  AttachmentRecord,
  Delta,
  Epoch,
  RecordBase,
  SystemRecord,
  UserRecord,
} from '../conversation/record.ts'
import { OWN_NAME } from './section.ts'
import { SECTION_DELTA, TOOL_DELTA } from './told.ts'

type Links = Exclude<keyof RecordBase, 'isMeta'>

/** A record but for what links it to the log: the caller gives it uuid, parent, time and session. */
export type RecordBody = Omit<SystemRecord, Links> | Omit<AttachmentRecord, Links> | Omit<UserRecord, Links>

export function epochRecord(epoch: Epoch): RecordBody {
  return { type: 'system', subtype: 'epoch', isMeta: true, epoch }
}

export function deltaRecord(delta: Delta): RecordBody {
  return { type: 'system', subtype: 'delta', isMeta: true, delta }
}

export function sectionWords(sections: Readonly<Record<string, string | null>>): readonly RecordBody[] {
  const entries = Object.entries(sections)
  if (entries.length === 0) return []
  const content = entries.map(([name, text]) => sectionText(name, text)).join('\n\n')
  const attachment = { type: SECTION_DELTA, names: entries.map(([name]) => name), content }
  return [{ type: 'attachment', isMeta: true, attachment }]
}

function sectionText(name: string, text: string | null): string {
  const what = name.startsWith(OWN_NAME) ? 'The system prompt' : `Its section "${name}"`
  return text === null ? `${what} no longer applies.` : `${what} now reads:\n${text}`
}

/** `declared`: the tools of the epoch, by name. */
export function toolWords(
  tools: Readonly<Record<string, JsonObject | null>>,
  declared: ReadonlySet<string>,
): readonly RecordBody[] {
  const entries = Object.entries(tools)
  if (entries.length === 0) return []
  const content = entries.map(([name, tool]) => toolText(name, tool, declared)).join('\n')
  const attachment = { type: TOOL_DELTA, names: entries.map(([name]) => name), content }
  return [{ type: 'attachment', isMeta: true, attachment }]
}

function toolText(name: string, tool: JsonObject | null, declared: ReadonlySet<string>): string {
  if (tool === null) return `${name}: can no longer be called.`
  const said = typeof tool.description === 'string' ? ` ${tool.description}` : ''
  if (!declared.has(name)) return `${name}: will be there to call after the next compaction.${said}`
  return `${name}: is now defined as ${JSON.stringify(tool)}`
}

/** A word to the provider, which offers or withdraws the tools from here on. It must be the last before the request. */
export function toolChange(blocks: readonly Block[]): readonly RecordBody[] {
  if (blocks.length === 0) return []
  return [{ type: 'user', isMeta: true, message: { role: 'system', content: blocks } }]
}
