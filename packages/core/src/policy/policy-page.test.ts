/** docs/policy.md matches the code: every field with its default, the worked table, the variables. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createPolicy, DEFAULT_POLICY } from './create-policy.ts'
import { policyFieldPaths, readPolicyValue } from './policy.ts'
import { computeScaledLimits } from './scale-policy.ts'
import { readSwitches } from './switches.ts'

const page = readFileSync(new URL('../../../../docs/policy.md', import.meta.url), 'utf8')
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  )

/** A default as the page writes it. */
function written(value: unknown): string {
  if (value === null) return 'none'
  if (value === '') return 'blank'
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  if (Array.isArray(value)) return value.map((item) => `\`${item}\``).join(', ')
  if (typeof value !== 'number') return `\`${value}\``
  return value === 4 / 3 ? '4/3' : value.toLocaleString('en-GB')
}

describe('docs/policy.md', () => {
  it('has a row for every field with its default, in order, and no other', () => {
    const fields = rows.filter(([name]) => /^`[a-zA-Z]+\.[a-zA-Z.]+`$/.test(name ?? ''))
    expect(fields.map(([name, fallback]) => [name, fallback])).toEqual(
      policyFieldPaths.map((path) => [`\`${path}\``, written(readPolicyValue(DEFAULT_POLICY, path))]),
    )
    expect(fields.filter((cells) => cells.length !== 4 || cells[3] === '')).toEqual([])
  })

  it('names a unit for every number', () => {
    const numbers = policyFieldPaths.filter(
      (path) => typeof readPolicyValue(DEFAULT_POLICY, path) === 'number',
    )
    const withUnit = rows.filter((cells) => cells.length === 4 && cells[2] !== '').map(([name]) => name)
    expect(numbers.filter((path) => !withUnit.includes(`\`${path}\``))).toEqual([])
  })

  it('has the worked table', () => {
    const worked = rows.filter((cells) => cells.length === 11 && /^\d/.test(cells[0] ?? ''))
    expect(worked.map(([window]) => window)).toEqual([
      '4,000',
      '8,000',
      '16,000',
      '32,000',
      '128,000',
      '200,000',
      '1,000,000',
    ])
    for (const cells of worked)
      expect(cells.map((cell) => Number(cell.replaceAll(',', '')))).toEqual(row(cells[0] ?? ''))
  })

  it('has every variable, and its example of a problem is the real message', () => {
    const variables = page.match(/`[A-Z][A-Z0-9]*(_[A-Z0-9]+)+`/g) ?? []
    const environment = Object.fromEntries(variables.map((name) => [name.slice(1, -1), '?']))
    expect(
      readSwitches(environment)
        .notices.map(({ variable }) => variable)
        .sort(),
    ).toEqual(Object.keys(environment).sort())
    expect(() =>
      createPolicy(
        JSON.parse(
          '{"clear":{"idle":{"keep":-1}},"cache":{"tll":1},"turn":{"network":{"firstDelayMs":9000}}}',
        ),
      ),
    ).toThrow(page.match(/^The policy has 3 problems:(\n- .*)+/m)?.[0] ?? 'an example')
  })
})

function row(window: string): readonly number[] {
  const scaled = computeScaledLimits(DEFAULT_POLICY, {
    window: Number(window.replaceAll(',', '')),
    maxOutput: 64_000,
  })
  if (!scaled.known) throw new Error(scaled.why)
  const { lines, budgets } = scaled
  return [
    ...[lines.window, lines.effective, lines.autoCompact, lines.warning, lines.blocking, lines.target],
    ...[budgets.files.total, budgets.skills.total, budgets.notes.total],
    ...[budgets.keptMessages.maximum, budgets.clear.target],
  ]
}
