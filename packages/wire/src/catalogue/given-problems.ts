/** What is wrong with a user's figures, said so that it can be put right. */
import { isObject } from '@tidemark/core'
import { type FieldGroup, isCheck } from './given-fields.ts'

export interface ModelProblem {
  /** Where, as in `models.my-model.window`. */
  readonly path: string
  readonly message: string
}

type Fields = Readonly<Record<string, unknown>>

/** Everything that is wrong with what was given, in the order it was given. */
export function problemsIn(group: FieldGroup, given: Fields, path: string): readonly ModelProblem[] {
  return Object.entries(given).flatMap(([key, value]) => {
    const at = path === '' ? key : `${path}.${key}`
    const node = Object.hasOwn(group, key) ? group[key] : undefined
    if (node === undefined)
      return [{ path: at, message: `no such field; there are ${Object.keys(group).join(', ')}` }]
    if (isCheck(node)) return node.accepts(value) ? [] : [wrong(at, node.expects, value)]
    return isObject(value)
      ? problemsIn(node, value, at)
      : [wrong(at, `an object with any of ${Object.keys(node).join(', ')}`, value)]
  })
}

export function wrong(path: string, expects: string, given: unknown): ModelProblem {
  const shown = given === undefined ? 'nothing' : JSON.stringify(given)
  return { path, message: `expected ${expects}; got ${shown.length > 80 ? `${shown.slice(0, 80)}…` : shown}` }
}
