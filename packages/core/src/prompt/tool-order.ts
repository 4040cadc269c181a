/**
 * The order of tools in a request: the same for the same tools, however they came in. A tool that moves takes
 * the whole cache with it, so the order is by name, and what is one user's alone stands behind what everybody has.
 */
import type { JsonObject } from '../conversation/json.ts'

/** Tells tools of one user's own setup (connected servers) from those that everybody has. */
export type IsUserTool = (tool: JsonObject) => boolean

const CONNECTED = 'mcp__'

export const isConnectedTool: IsUserTool = (tool) => toolName(tool).startsWith(CONNECTED)

export function orderTools(
  tools: readonly JsonObject[],
  isUserTool: IsUserTool = isConnectedTool,
): readonly JsonObject[] {
  const byName = tools.toSorted((one, other) => compare(toolName(one), toolName(other)))
  return [...byName.filter((tool) => !isUserTool(tool)), ...byName.filter(isUserTool)]
}

/** The provider's own tools may have no name; their type stands for it. */
export function toolName({ name, type }: JsonObject): string {
  if (typeof name === 'string') return name
  return typeof type === 'string' ? type : ''
}

/** By code units: the same on every machine. */
function compare(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}
