/** The tools of a request: the list, the choice among them, and changes to it in mid-conversation. */
import { isObject } from '../../conversation/json.ts'
import { Trie } from '../../conversation/trie.ts'
import type { Profile } from '../../policy/profile.ts'
import type { CallState } from './calls.ts'
import { type Fields, isAbsent, type Report } from './finding.ts'
import type { ReadMessage } from './read.ts'
import { thinkingMode } from './thinking.ts'

export interface ToolRules {
  readonly profile: Profile
  readonly report: Report
}

function toolsOf({ tools }: Fields): readonly unknown[] {
  return Array.isArray(tools) ? Array.from(tools) : []
}

function namesOf(request: Fields): ReadonlySet<unknown> {
  return new Set(toolsOf(request).map((tool) => (isObject(tool) ? tool.name : undefined)))
}

export function checkTools(request: Fields, { profile, report }: ToolRules): void {
  if (!isAbsent(request.tools) && !Array.isArray(request.tools)) {
    report('tools-shape', 'tools', 'Expected a list of tools.')
  }
  const pattern = new RegExp(profile.tools.namePattern)
  const names = new Set<unknown>()
  toolsOf(request).forEach((tool, index) => {
    const path = `tools.${index}`
    if (!isObject(tool)) {
      report('tools-shape', path, 'Expected an object.')
      return
    }
    checkTool(tool, path, { pattern, report })
    const isRepeated = typeof tool.name === 'string' && names.has(tool.name)
    if (isRepeated) report('tool-name-repeated', `${path}.name`, 'Expected a name that no other tool has.')
    names.add(tool.name)
  })
  checkDeferred(request, { profile, report })
}

function checkDeferred(request: Fields, { profile, report }: ToolRules): void {
  const most = profile.sizes.deferredTools
  const count = toolsOf(request).filter((tool) => isObject(tool) && tool.defer_loading === true).length
  if (count > most) report('tool-count', 'tools', `Expected at most ${most} deferred tools, not ${count}.`)
}

/** A tool of the caller's has no type, or `custom`; those the provider brings along need no schema, some no name. */
function checkTool(
  tool: Fields,
  path: string,
  { pattern, report }: { pattern: RegExp; report: Report },
): void {
  const isOwn = isAbsent(tool.type) || tool.type === 'custom'
  const isNamed = !isAbsent(tool.name)
  if ((isOwn || isNamed) && !(typeof tool.name === 'string' && pattern.test(tool.name))) {
    report('tool-name', `${path}.name`, `Expected a name that matches ${pattern.source}.`)
  }
  if (isOwn && !(isObject(tool.input_schema) && tool.input_schema.type === 'object')) {
    report('tool-schema', `${path}.input_schema`, "Expected a schema of type 'object'.")
  }
}

const CHOICES: ReadonlySet<unknown> = new Set(['auto', 'any', 'tool', 'none'])

export function isForced({ tool_choice: choice }: Fields): boolean {
  return isObject(choice) && (choice.type === 'any' || choice.type === 'tool')
}

export function checkToolChoice(request: Fields, { profile, report }: ToolRules): void {
  const choice = request.tool_choice
  if (isAbsent(choice)) return
  if (!isObject(choice) || !CHOICES.has(choice.type)) {
    report('tool-choice', 'tool_choice', `Expected an object of type ${[...CHOICES].join(', ')}.`)
    return
  }
  if (toolsOf(request).length === 0) {
    report('tool-choice', 'tool_choice', 'Expected a choice only where tools are declared.')
  } else if (
    choice.type === 'tool' &&
    !(typeof choice.name === 'string' && namesOf(request).has(choice.name))
  ) {
    report('tool-choice', 'tool_choice.name', 'Expected the name of a declared tool.')
  }
  const mode = thinkingMode(request, profile.thinking)
  const isFree = profile.thinking.unforcedInModes.some((unforced) => unforced === mode)
  if (isForced(request) && (profile.tools.forcedChoice === 'refused' || isFree)) {
    report('tool-choice-forced', 'tool_choice.type', "Expected 'auto' or 'none'.")
  }
}

/** Tools that were added or removed by reference: each name, and where it was first met. */
export type ToolChanges = Trie<string>

export const startToolChanges: ToolChanges = Trie.empty()

export function stepToolChanges(changes: ToolChanges, message: ReadMessage, rules: ToolRules): ToolChanges {
  let after = changes
  for (const { block, path } of message.blocks) {
    if (block.type !== 'tool_addition' && block.type !== 'tool_removal') continue
    if (!rules.profile.capabilities.toolChanges) {
      rules.report('tool-change-refused', path, 'Expected no change of tools among the messages.')
    }
    const tool: unknown = block.tool
    if (!isObject(tool) || tool.type !== 'tool_reference' || typeof tool.name !== 'string') continue
    if (!after.has(tool.name)) after = after.set(tool.name, path)
  }
  return after
}

function checkWaiting({ waiting }: CallState, request: Fields, report: Report): void {
  const names = namesOf(request)
  for (const [id, { path, tool }] of waiting) {
    if (tool === null || names.has(tool)) continue
    report('tools-undeclared', path, `Expected the tool ${tool} to be declared while ${id} waits for it.`)
  }
}

export function finishToolChanges(changes: ToolChanges, request: Fields, report: Report): void {
  const names = namesOf(request)
  for (const [name, path] of changes) {
    if (names.has(name)) continue
    report('tool-change-unknown', `${path}.tool.name`, `Expected the name of a declared tool: ${name}.`)
  }
}

/** Tool blocks need tools; a call under way needs what runs it, which may come with a connected server. */
export function checkDeclared(calls: CallState, request: Fields, { profile, report }: ToolRules): void {
  const servers = request.mcp_servers
  const isServed = Array.isArray(servers) && servers.length > 0
  if (toolsOf(request).length > 0) {
    if (!isServed) checkWaiting(calls, request, report)
    return
  }
  const isMissing =
    (calls.usesTools && profile.tools.declaredWhenUsed) || (calls.waiting.size > 0 && !isServed)
  if (isMissing)
    report('tools-undeclared', 'tools', 'Expected the tools that the messages use to be declared.')
}
