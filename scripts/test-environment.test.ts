import { homedir } from 'node:os'
import { expect, it } from 'vitest'
import { COMPILED, createTestEnvironment } from './test-environment.ts'

it('a test sees nothing of the shell, the user and the program that started the run', () => {
  const shell = {
    PATH: '/bin',
    TIDEMARK_SEED: '7',
    npm_command: 'exec',
    npm_config_registry: 'http://127.0.0.1:1',
    HOME: '/users',
    XDG_DATA_HOME: '/users/data',
    TIDEMARK_HOME: '/users/tidemark',
    ANTHROPIC_API_KEY: 'secret',
    DISABLE_COMPACT: '1',
    NO_COLOR: '1',
    FORCE_COLOR: '3',
    COLUMNS: '40',
    TERM: 'dumb',
    TMUX: '/run/tmux,1,0',
    LC_ALL: 'de_DE.UTF-8',
    GIT_DIR: '.git',
    NODE_OPTIONS: '--trace-warnings',
    HTTPS_PROXY: 'http://127.0.0.1:1',
  }
  const home = { HOME: '/empty', USERPROFILE: '/empty' }
  const fixed = { SHELL: '/bin/sh', LANG: 'C.UTF-8', TZ: 'UTC', GIT_CONFIG_NOSYSTEM: '1' }
  expect(createTestEnvironment(shell, '/empty')).toEqual({
    PATH: '/bin',
    TIDEMARK_SEED: '7',
    ...home,
    ...fixed,
    NODE_COMPILE_CACHE: COMPILED,
  })
})

it('the workers of this run have that environment, with a home of their own', () => {
  const { HOME = '', TZ, npm_command, TERM } = process.env
  expect([TZ, npm_command, TERM]).toEqual(['UTC', undefined, undefined])
  expect(HOME).toMatch(/tidemark-tests-\w+[\\/]home-\w+$/)
  expect(homedir()).toBe(HOME)
  expect(new Date(0).getTimezoneOffset()).toBe(0)
})
