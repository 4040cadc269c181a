/** Every policy field has an effect: some code reads it, or a value for it is refused until its feature exists. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { policyFieldPaths, policyFields } from './policy.ts'
import { type FieldSpec, type FieldSpecTree, isFieldSpec } from './policy-fields.ts'

const PACKAGES = new URL('../../../', import.meta.url)

/** Files that define and check the policy; a field named there is not thereby read. */
const DEFINING = /^core\/src\/policy\/(policy|policy-fields|create-policy|provider-profile)\.ts$/

const code = ['core', 'wire', 'tidemark', 'cli']
  .flatMap((name) =>
    readdirSync(new URL(`${name}/src/`, PACKAGES), { recursive: true }).map((file) => `${name}/src/${file}`),
  )
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !DEFINING.test(file))
  .map((file) => readFileSync(new URL(file, PACKAGES), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, ''))
  .join('\n')

function isFound(pattern: string): boolean {
  return new RegExp(pattern).test(code)
}

/** Whether the code reads a field: as `group.field`, by destructuring the group, by its name, or from a passed group. */
function isRead(path: string): boolean {
  const [field = '', group = '', above = 'policy'] = path.split('.').toReversed()
  if (isFound(`\\b(${group}|policy)\\??\\.${field}\\b`)) return true
  if (isFound(`\\b${group}: \\{[^{}]*\\b${field}\\b[^{}]*\\}`)) return true
  if (isFound(`\\{[^{}]*\\b${field}\\b[^{}]*\\}( \\})? = [^;\\n]*\\b${group}\\b`)) return true
  if (isFound(`\\b(share|setting)\\('${field}'\\)`)) return true
  const isPassedWhole =
    isFound(`\\b${above}\\.${group}\\b\\s*[,)}]`) || isFound(`[{,] ${group} \\}[^;\\n]* = .*${above}`)
  return isPassedWhole && isFound(`(\\.|[{,]\\s*)${field}\\b`)
}

function findSpec(path: string): FieldSpec<unknown> {
  let node: FieldSpec<unknown> | FieldSpecTree = policyFields
  for (const key of path.split('.')) node = (node as FieldSpecTree)[key] as FieldSpecTree
  if (!isFieldSpec(node)) throw new Error(`${path} is not a field`)
  return node
}

describe('every policy field', () => {
  it('is read by the code, unless setting it is refused', () => {
    const working = policyFieldPaths.filter((path) => findSpec(path).awaits === undefined)
    expect(working.filter((path) => !isRead(path))).toEqual([])
  })

  it('that is refused belongs to the memory reminder', () => {
    const refused = policyFieldPaths.filter((path) => findSpec(path).awaits !== undefined)
    const groups = [...new Set(refused.map((path) => path.split('.').slice(0, -1).join('.')))]
    expect(groups).toEqual(['shares', 'memoryFiles'])
  })
})
