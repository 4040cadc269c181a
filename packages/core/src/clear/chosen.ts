/** What a clearing takes away, in the order of the view: the first of it, the tokens of it, and what the host must forget. */
import type { ClearedInput } from '../conversation/metadata.ts'
import type { Candidate } from './candidates.ts'
import type { Released } from './proposal.ts'
import { type Register, resultOf } from './register-state.ts'
import type { Memory, ToolResult } from './registered.ts'
import type { FirstChange } from './temperature.ts'

export interface Chosen {
  /** In the order of the view. */
  readonly results: readonly ToolResult[]
  readonly inputs: readonly (ClearedInput & { readonly result: ToolResult })[]
}

/** A result that refers to a cleared one goes with it, however small it is. */
export function chosenOf(register: Register, candidates: readonly Candidate[]): Chosen {
  const own = candidates.filter(({ frees }) => frees > 0)
  const ids = new Set([...own.map(({ result }) => result.call.id), ...own.flatMap((one) => one.dependents)])
  const results = [...ids].flatMap((id) => resultOf(register, id) ?? [])
  const inputs = candidates.flatMap(({ result }) =>
    result.call.inputs.map(({ field }) => ({ toolUseId: result.call.id, field, result })),
  )
  return {
    results: results.toSorted(inView),
    inputs: inputs.toSorted((one, other) => inView(one.result, other.result)),
  }
}

function inView(one: ToolResult, other: ToolResult): number {
  return one.place - other.place || one.call.place - other.call.place
}

export function freedBy(candidates: readonly Candidate[]): number {
  return candidates.reduce((sum, { frees, freesInputs }) => sum + frees + freesInputs, 0)
}

export interface First {
  readonly change: FirstChange
  readonly response: number
}

/** Calls come before the results of their response, so of two changes in one response the call's is first. */
export function firstChange({ results, inputs }: Chosen): First {
  const changes: readonly First[] = [
    ...inputs.map(({ result }) => changeOf(result, 'call')),
    ...results.map((result) => changeOf(result, 'result')),
  ]
  return changes.reduce((first, each) => (each.response < first.response ? each : first))
}

function changeOf({ call }: ToolResult, part: FirstChange['part']): First {
  return { change: { toolUseId: call.id, part }, response: call.response }
}

/** A file stays known while a complete read or a whole write of it is shown. */
export function releasedBy(register: Register, chosen: Chosen, memories: readonly Memory[]): Released {
  const gone = new Set(chosen.results.map(({ call }) => call.id))
  const shorn = new Set(chosen.inputs.map(({ toolUseId }) => toolUseId))
  const touched = [...chosen.results, ...chosen.inputs.map(({ result }) => result)]
  const paths = new Set(touched.flatMap(({ call }) => call.path ?? []))
  const shown = new Set<string>()
  for (const result of paths.size === 0 ? [] : register.results) {
    const { path, id } = result.call
    if (path !== null && paths.has(path) && showsFile(register, result) && !gone.has(id) && !shorn.has(id))
      shown.add(path)
  }
  const files = [...paths].filter((path) => !shown.has(path))
  return { toolUseIds: [...gone], filePaths: [...new Set([...files, ...memories.map(({ path }) => path)])] }
}

/** The result, with its call, tells the whole of a file. */
export function showsFile(
  { remote }: Register,
  { call, isError, isComplete, isCleared }: ToolResult,
): boolean {
  const isFile = call.concern === 'write' || (call.concern === 'read' && call.range === null)
  return isFile && !isError && isComplete && !isCleared && remote.get(call.id) === undefined
}
