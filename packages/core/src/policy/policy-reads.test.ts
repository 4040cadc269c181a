/** Every policy field has an effect: some code reads it, or a value for it is refused until its feature exists. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { policyFieldPaths } from './policy.ts'

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

describe('every policy field', () => {
  it('is read by the code', () => {
    expect(policyFieldPaths.filter((path) => !isRead(path))).toEqual([])
  })
})
