import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { nodeFileSystem } from './file-system.ts'

let root = ''
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tidemark-'))
})
afterEach(() => {
  rmSync(root, { recursive: true, force: true })
})

const isPosix = process.platform !== 'win32'

describe.runIf(isPosix)('the files of Node', () => {
  it('can be read by their owner only', async () => {
    await nodeFileSystem.makeDirectory(join(root, 'd'))
    await (await nodeFileSystem.open(join(root, 'd', 'f'), 'create'))?.close()
    const modes = ['d', 'd/f'].map((name) => statSync(join(root, name)).mode & 0o777)
    expect(modes).toEqual([0o700, 0o600])
  })

  it('are never opened through a symbolic link', async () => {
    writeFileSync(join(root, 'target'), 'secret')
    symlinkSync(join(root, 'target'), join(root, 'link'))
    const path = join(root, 'link')
    await expect(nodeFileSystem.open(path, 'read')).rejects.toThrow('ELOOP')
    await expect(nodeFileSystem.open(path, 'append')).rejects.toThrow('ELOOP')
    expect(await nodeFileSystem.open(path, 'create')).toBe(null)
    expect((await nodeFileSystem.facts(path))?.kind).toBe('other')
  })

  it('do not hang on a pipe', async () => {
    const path = join(root, 'pipe')
    execFileSync('mkfifo', [path])
    const file = await nodeFileSystem.open(path, 'read')
    expect((await file?.facts())?.kind).toBe('other')
    await file?.close()
  })
})

describe('removeAtExit', () => {
  const module = new URL('./file-system.ts', import.meta.url).href

  function runChild(lines: string): void {
    execFileSync(process.execPath, [
      '--conditions=tidemark-source',
      '--input-type=module',
      '-e',
      `import { writeFileSync } from 'node:fs'\nimport { nodeFileSystem } from ${JSON.stringify(module)}\nconst { removeAtExit } = nodeFileSystem\n${lines}`,
    ])
  }

  it.each([
    ['removes the file when the process ends', `removeAtExit(path, 'mine')`, false],
    [
      'leaves a file whose content has changed',
      `removeAtExit(path, 'mine'); writeFileSync(path, 'theirs')`,
      true,
    ],
    ['leaves a file whose removal was cancelled', `removeAtExit(path, 'mine')()`, true],
    ['does not fail for a file that is gone', `removeAtExit(path + 'x', 'mine')`, true],
  ])('%s', async (_name, code, isLeft) => {
    const path = join(root, 'file')
    writeFileSync(path, 'mine')
    runChild(`const path = ${JSON.stringify(path)}\n${code}`)
    expect((await nodeFileSystem.facts(path)) !== null).toBe(isLeft)
  })
})
