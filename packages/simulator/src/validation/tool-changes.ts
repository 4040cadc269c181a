/** Tools added and withdrawn in mid-conversation: by reference to a declared one, or with a definition. */
import { isObject } from '../api.ts'
import { coded, invalid, type Refusal } from '../refusal.ts'
import { BETA } from './betas.ts'
import { type CheckedRequest, type PlacedBlock, pathOf, type Rule } from './rule.ts'

const CHANGES = new Set(['tool_addition', 'tool_removal'])

export const toolChanges: Rule = (request) => {
  const defined = new Set<unknown>((request.body.tools ?? []).map((tool) => tool.name))
  for (const [index, turn] of request.turns.entries()) {
    for (const placed of turn.blocks) {
      if (!CHANGES.has(placed.block.type)) continue
      const paused = request.turns[index - 1]?.role === 'assistant'
      const found = changeBreach(placed, request, { defined, paused })
      if (found !== null) return found
    }
  }
  return null
}

function changeBreach(
  placed: PlacedBlock,
  { model, gate }: CheckedRequest,
  { defined, paused }: { readonly defined: Set<unknown>; readonly paused: boolean },
): Refusal | null {
  const path = pathOf(placed)
  const { tool, type } = placed.block
  if (!model.toolChanges) return invalid(`${path}: \`${type}\` blocks are not supported for this model`)
  if (paused) return invalid(`${path}: \`${type}\` blocks may not follow a paused turn`)
  if (!isObject(tool)) return null
  if (tool.type === 'tool_definition') {
    if (!gate.betas.has(BETA.inlineTools) || type === 'tool_removal')
      return invalid(
        `${path}.${type}.tool: Input tag 'tool_definition' found using 'type' does not match any of the expected tags`,
      )
    if (isObject(tool.definition)) defined.add(tool.definition.name)
    return null
  }
  return tool.type === 'tool_reference' && !defined.has(tool.name)
    ? coded(
        'tool_reference_unresolved',
        `${path}: tool \`${String(tool.name)}\` is not defined at this point`,
      )
    : null
}
