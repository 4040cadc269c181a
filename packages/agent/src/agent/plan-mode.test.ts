import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { openPlanMode } from './plan-mode.ts'

it('a mode that is switched several times in a moment is the last one at once, and on the disk', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-plan-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'plan.json')
  const plan = await openPlanMode({ file, given: undefined, usual: 'default', canAsk: true, canSwitch: true })
  const switched = ['plan', 'default', 'plan', 'accept-edits'].map((mode) => {
    const stored = plan.switchTo(mode as 'plan')
    expect(plan.readMode()).toBe(mode)
    return stored
  })
  await Promise.all(switched)
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ isOn: false })
})
