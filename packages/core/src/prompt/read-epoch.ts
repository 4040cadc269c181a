/** Epochs as a log holds them: decoding has seen that there is an object, and no more. */
import { isObject, type JsonObject } from '../conversation/json.ts'
import type { Epoch, EpochSection } from '../conversation/record.ts'

/** Null for what is no epoch; the one before it then goes on standing. */
export function readEpoch(value: Epoch | undefined): Epoch | null {
  const fields: unknown = value
  if (!isObject(fields) || typeof fields.model !== 'string' || !isObject(fields.parameters)) return null
  const { sections, tools } = fields
  if (!Array.isArray(sections) || !sections.every(isSection)) return null
  return Array.isArray(tools) && tools.every(isTool) ? (value ?? null) : null
}

const PARTS = new Set<unknown>(['static', 'dynamic', 'volatile'])

function isSection(value: unknown): value is EpochSection {
  if (!isObject(value) || !PARTS.has(value.part)) return false
  return typeof value.name === 'string' && typeof value.text === 'string'
}

function isTool(value: unknown): value is JsonObject {
  return isObject(value)
}
