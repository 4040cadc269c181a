import { describe, expect, it } from 'vitest'
import {
  createBwrapArguments,
  createSeatbeltProfile,
  type PlaceAccess,
  withPinnedFolders,
} from './mount-plan.ts'

const PLACES = new Map<string, PlaceAccess>([
  ['/usr/share/doc', 'none'],
  ['/usr', 'write'],
  ['/usr/bin', 'read'],
])
const PLAN = { places: PLACES, tempFolder: '/var', hasNetwork: false }

describe('the places of a sandbox', () => {
  it('are mounted with the longest path last, so that it counts', () => {
    const text = createBwrapArguments(PLAN).join(' ')
    const mounts = ['--bind-try /usr /usr', '--ro-bind-try /usr/bin /usr/bin', '--tmpfs /usr/share/doc']
    const found = mounts.map((mount) => text.indexOf(mount))
    expect(found).toEqual([...found].sort((one, other) => one - other))
    expect(found.every((place) => place > text.indexOf('--ro-bind / /'))).toBe(true)
  })

  it('have the folders between a guarded one and the next that can be written, so that none can be renamed', () => {
    expect(Object.fromEntries(withPinnedFolders(PLACES))).toEqual({
      ...Object.fromEntries(PLACES),
      '/usr/share': 'write',
    })
    expect([...withPinnedFolders(new Map([['/etc/ssl/private', 'none']])).keys()]).toEqual([
      '/etc/ssl/private',
    ])
  })

  it('have no network unless it is given', () => {
    expect(createBwrapArguments(PLAN)).toContain('--unshare-net')
    expect(createBwrapArguments({ ...PLAN, hasNetwork: true })).not.toContain('--unshare-net')
  })

  it('have Node where it is installed, also below /tmp, if a bridge to listed hosts runs on it', () => {
    const entrance = { port: 1, folder: '/var/lib', close: async () => undefined }
    const text = createBwrapArguments({ ...PLAN, entrance }).join(' ')
    const node = text.indexOf(`--ro-bind ${process.execPath} ${process.execPath}`)
    expect(node).toBeGreaterThan(text.indexOf('--bind /var /tmp'))
    expect(createBwrapArguments(PLAN)).not.toContain(process.execPath)
  })

  it('are rules of a profile for macOS, the longest path last, with names quoted', () => {
    const places = new Map([...PLACES, ['/usr/a"b', 'none'] as const])
    const rules = createSeatbeltProfile({ ...PLAN, places }).split('\n')
    const own = rules.filter((rule) => rule.includes('"/usr'))
    expect(own).toEqual([
      '(allow file-read* file-write* (subpath "/usr"))',
      '(deny file-write* (subpath "/usr/bin"))',
      '(deny file-read* file-write* (subpath "/usr/a\\"b"))',
      '(deny file-read* file-write* (subpath "/usr/share/doc"))',
      '(deny file-write-unlink (literal "/usr/share"))',
    ])
    expect([rules[2], rules.includes('(deny network*)')]).toEqual(['(deny file-write*)', true])
  })
})
