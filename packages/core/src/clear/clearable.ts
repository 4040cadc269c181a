/** Which tools give results that can be had again; nothing else is ever cleared. */
import type { ClearPolicy } from '../policy/groups/clear-policy.ts'

/** What the host says of its own tools, beyond the policy's list. */
export interface HostTools {
  /** Tools whose results can be had again. */
  readonly clearable?: readonly string[]
  /** MCP tools whose annotations say that they only read. */
  readonly readOnly?: readonly string[]
}

const MCP = 'mcp__'

/** Words with the person, task and todo lists, notebooks: what these gave cannot be asked for again. */
const NEVER: ReadonlySet<string> = new Set([
  'agent',
  'askuserquestion',
  'enterplanmode',
  'exitplanmode',
  'notebookedit',
  'question',
  'requestuserinput',
  'task',
  'taskcreate',
  'taskget',
  'tasklist',
  'taskoutput',
  'taskstop',
  'taskupdate',
  'todo',
  'todoread',
  'todowrite',
  'updateplan',
])

/** A predicate that remembers its answers: it is asked for every call. */
export function clearableTools(policy: ClearPolicy, host: HostTools = {}): (tool: string) => boolean {
  const listed = new Set([...policy.tools, ...(host.clearable ?? [])])
  const readOnly = new Set(policy.mcp === 'read-only' ? (host.readOnly ?? []) : [])
  const known = new Map<string, boolean>()
  return (tool) => {
    const answer = known.get(tool) ?? (!isNever(tool) && (listed.has(tool) || isReadOnlyMcp(tool, readOnly)))
    known.set(tool, answer)
    return answer
  }
}

/** However the name is written: `TodoWrite`, `todo_write`. Listing such a tool changes nothing. */
function isNever(tool: string): boolean {
  return NEVER.has(tool.toLowerCase().replace(/[^a-z]/g, ''))
}

function isReadOnlyMcp(tool: string, readOnly: ReadonlySet<string>): boolean {
  return tool.startsWith(MCP) && readOnly.has(tool)
}
