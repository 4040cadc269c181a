/** Context sources on a real disk: the model sees the current content. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import { computeScaledLimits } from '@tidemark/core/policy/scale-policy'
import { collectSourceAttachments } from '@tidemark/core/sources/collect-sources'
import { SessionBuilder } from '@tidemark/core/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createDiskFileReader, type DiskSourcesOptions, diskSources } from './disk-sources.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-carry-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function write(name: string, content: string | Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

function read(builder: SessionBuilder, path: string): void {
  const id = builder.id('call')
  builder.assistant(builder.id('m'), [{ type: 'tool_use', id, name: 'Read', input: { file_path: path } }])
  builder.result(id, 'as it was')
}

async function brought(builder: SessionBuilder, options: DiskSourcesOptions = {}) {
  const { budgets } = computeScaledLimits(DEFAULT_POLICY, { window: 200_000, maxOutput: 64_000 })
  const outcome = await collectSourceAttachments(diskSources({ folder, ...options }), {
    ...{ session: builder.session, kept: [], policy: DEFAULT_POLICY, budgets },
    measure: (text: string) => Math.ceil(text.length / 4),
  })
  return {
    texts: outcome.carried.map(({ attachment: { content, planContent } }) => content ?? planContent),
    skipped: outcome.skipped.map(({ why }) => why),
    failed: outcome.failed,
  }
}

describe('after a compaction', () => {
  it('files, plan and instructions have their current content on disk', async () => {
    const builder = new SessionBuilder()
    read(builder, write('a.ts', 'v1'))
    read(builder, 'b.ts')
    write('b.ts', '\ufeffb\r\n')
    write('a.ts', 'v2 ✓')
    write('plan.md', '# Plan\n')
    write('AGENTS.md', 'Never push.\n')
    const options = { planFile: () => 'plan.md', standing: () => ['AGENTS.md', 'absent.md'] }
    read(builder, 'plan.md')
    expect(await brought(builder, options)).toEqual({
      texts: ['Never push.\n', '\ufeffb\r\n', 'v2 ✓', '# Plan\n'],
      skipped: [],
      failed: [],
    })
    write('AGENTS.md', 'Never push to main.\n')
    rmSync(join(folder, 'plan.md'))
    expect((await brought(builder, options)).texts).toEqual(['Never push to main.\n', '\ufeffb\r\n', 'v2 ✓'])
  })

  it('files that cannot be read are reported and skipped', async () => {
    const builder = new SessionBuilder()
    mkdirSync(join(folder, 'directory'))
    execFileSync('mkfifo', [join(folder, 'pipe')])
    write('binary', Uint8Array.of(137, 80, 0, 1))
    write('latin', Uint8Array.of(0x63, 0xe9))
    for (const name of ['good', 'gone', 'directory', 'pipe', 'binary', 'latin'])
      read(builder, join(folder, name))
    write('good', 'good')
    expect(await brought(builder)).toEqual({
      texts: ['good'],
      skipped: ['it is no text', 'it is no text', 'it is no file', 'it is no file', 'there is no such file'],
      failed: [],
    })
  })

  it('links are followed: a file is attached once, an instruction file not at all', async () => {
    const builder = new SessionBuilder()
    const real = write('real.ts', 'code')
    symlinkSync(real, join(folder, 'link.ts'))
    symlinkSync(write('AGENTS.md', 'rules'), join(folder, 'RULES.md'))
    symlinkSync('/nowhere', join(folder, 'broken'))
    for (const name of ['real.ts', 'link.ts', 'RULES.md', 'broken']) read(builder, name)
    expect(await brought(builder)).toEqual({
      texts: ['code'],
      skipped: ['there is no such file'],
      failed: [],
    })
  })

  it('an instruction file that exists and cannot be read is reported', async () => {
    mkdirSync(join(folder, 'CLAUDE.md'))
    const { failed } = await brought(new SessionBuilder(), { standing: () => ['CLAUDE.md'] })
    expect(failed).toEqual([{ carrier: 'standing', why: 'EISDIR: illegal operation on a directory, read' }])
  })
})

describe('the reader', () => {
  it('reads no more than the limit and cuts no character in two', async () => {
    const path = write('long', 'aé'.repeat(1_000))
    expect(await createDiskFileReader(folder).read('long', 11)).toEqual({
      ...{ ok: true, text: 'aéaéaéa', bytes: 3_000, isWhole: false, realPath: path },
      fileId: expect.stringMatching(/^\d+:\d+$/),
    })
  })

  it.skipIf(process.getuid?.() === 0)('reports a file without read permission', async () => {
    chmodSync(write('secret', 'x'), 0)
    expect(await createDiskFileReader(folder).read('secret', 10)).toEqual({
      ok: false,
      why: 'it may not be read',
    })
  })
})
