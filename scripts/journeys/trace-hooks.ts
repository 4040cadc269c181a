/**
 * Loaded with `node --import` before the sources: every named function under packages/SOME/src reports when it is entered,
 * so that a journey can be followed through the files. See journeys.ts.
 */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { recordEntry } from './trace.ts'

declare global {
  var recordJourneyEntry: (place: string) => void
}
globalThis.recordJourneyEntry = recordEntry

registerHooks({
  load(url, context, next) {
    const [, from] = /^file:.*\/packages\/([^/]+\/src\/.*)\.ts$/.exec(url) ?? []
    if (from === undefined) return next(url, context)
    const source = instrument(readFileSync(fileURLToPath(url), 'utf8'), from.replace('/src/', '/'))
    return { format: 'module-typescript', source, shortCircuit: true }
  },
})

/** Returns the source with a report at the start of every function that has a name; `from` is its file. */
function instrument(text: string, from: string): string {
  const file = ts.createSourceFile(from, text, ts.ScriptTarget.Latest, true)
  const insertions: { readonly at: number; readonly code: string }[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const name = readName(node)
      const report = `recordJourneyEntry(${JSON.stringify(`${from}#${name}`)})`
      const body = node.body as ts.Node
      if (name !== null && ts.isBlock(body))
        insertions.push({ at: body.getStart(file) + 1, code: `${report};` })
      else if (name !== null)
        insertions.push({ at: body.getStart(file), code: `(${report},` }, { at: body.getEnd(), code: ')' })
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  const lastFirst = insertions.toSorted((one, other) => other.at - one.at)
  return lastFirst.reduce((done, { at, code }) => done.slice(0, at) + code + done.slice(at), text)
}

function readName(node: ts.SignatureDeclaration): string | null {
  if (node.name !== undefined) return node.name.getText()
  const { parent } = node
  const isNamed = ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent)
  return isNamed ? parent.name.getText() : null
}
