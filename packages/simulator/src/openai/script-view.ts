/**
 * The view of a request for scripts, the same for every API: system blocks, tools with their schemas, and messages of
 * text, thinking, calls and results.
 */
import {
  type Block,
  isObject,
  type Json,
  type JsonObject,
  type MessageParam,
} from '../protocol/messages-request.ts'
import type { JsonFields } from './openai-shape.ts'

export interface ToolView {
  readonly tools: readonly JsonObject[]
  /** Names of custom tools, whose input is free text. */
  readonly custom: ReadonlySet<string>
  /** The namespace of each tool that has one. */
  readonly namespaces: ReadonlyMap<string, string>
}

export interface ScriptView extends ToolView {
  readonly system: readonly Block[]
  readonly messages: readonly MessageParam[]
}

/** The schema of a custom tool, whose input is a text. */
const TEXT_SCHEMA: JsonObject = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
}

/** Describes the tools of a request for scripts. Tools that the provider runs are left out. */
export function createToolView(declared: readonly JsonFields[]): ToolView {
  const tools: JsonObject[] = []
  const custom = new Set<string>()
  const namespaces = new Map<string, string>()
  for (const tool of declared) {
    const members =
      tool.type === 'namespace' && Array.isArray(tool.tools) ? tool.tools.filter(isObject) : [tool]
    for (const member of members) {
      // Chat Completions has the definition in a field whose name is the type of the tool.
      const nested = member[String(member.type)]
      const definition = isObject(nested) ? nested : member
      const { name, description } = definition
      if (typeof name !== 'string' || (member.type !== 'function' && member.type !== 'custom')) continue
      if (member.type === 'custom') custom.add(name)
      if (tool.type === 'namespace') namespaces.set(name, String(tool.name))
      const schema = member.type === 'custom' ? TEXT_SCHEMA : (definition.parameters ?? { type: 'object' })
      tools.push({
        name,
        ...(typeof description === 'string' ? { description } : {}),
        // The cast is safe because the schema comes from a JSON body.
        input_schema: schema as Json,
      })
    }
  }
  return { tools, custom, namespaces }
}

type ViewRole = MessageParam['role']

export interface ViewBuilder {
  addSystem(text: string): void
  /** Adds a message. System and developer messages at the beginning become part of the system prompt. */
  addMessage(role: ViewRole | 'developer', blocks: readonly Block[]): void
  addCall(id: string, name: string, input: JsonObject): void
  addResult(id: string, content: readonly Block[]): void
  addBlock(role: ViewRole, block: Block): void
  finish(tools: ToolView): ScriptView
}

/** Creates an empty view. Successive blocks of one role become one message. */
export function createViewBuilder(): ViewBuilder {
  const system: Block[] = []
  const messages: { readonly role: ViewRole; readonly content: Block[] }[] = []

  function addBlock(role: ViewRole, block: Block): void {
    const last = messages.at(-1)
    if (last !== undefined && last.role === role) last.content.push(block)
    else messages.push({ role, content: [block] })
  }

  return {
    addSystem: (text) => void system.push({ type: 'text', text }),
    addMessage(role, blocks) {
      const isSystem = role === 'system' || role === 'developer'
      if (isSystem && messages.length === 0) system.push(...blocks)
      else for (const block of blocks) addBlock(isSystem ? 'system' : role, block)
    },
    addCall: (id, name, input) => addBlock('assistant', { type: 'tool_use', id, name, input }),
    addResult: (id, content) => addBlock('user', { type: 'tool_result', tool_use_id: id, content }),
    addBlock,
    finish: (tools) => ({ ...tools, system, messages }),
  }
}
