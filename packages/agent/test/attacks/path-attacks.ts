/** Paths that decide what runs later, and files that a rule denies. */
import { type AttackClass, FOLDER, HOME, listLines } from './attack.ts'

const PROTECTED = listLines(`
  .git/hooks/pre-commit
  .git/config
  .git/modules/x/config
  .git
  sub/.git
  sub/.git/hooks/post-checkout
  .GIT/config
  .Git/hooks/pre-push
  .git./config
  .gi\u200ct/config
  .gitmodules
  .gitconfig
  .claude/settings.json
  .claude/settings.local.json
  .claude/skills/x/SKILL.md
  .claude/commands/x.md
  .claude/agents/x.md
  .CLAUDE/settings.json
  .tidemark/settings.json
  .tidemark/settings.local.json
  .codex/config.toml
  .cursor/mcp.json
  .cursor/rules/x.mdc
  .vscode/tasks.json
  .vscode/settings.json
  sub/.vscode/tasks.json
  .idea/workspace.xml
  .husky/pre-commit
  .envrc
  sub/.envrc
  .npmrc
  packages/x/.npmrc
  .yarnrc.yml
  .mcp.json
  .ripgreprc
  .hg/hgrc
  .hgrc
  .svn/entries
  .jj/repo/config.toml
  .devcontainer/devcontainer.json
  .devcontainer.json
  .zed/tasks.json
  .fleet/run.json
  .pre-commit-config.yaml
  lefthook.yml
  LEFTHOOK.YML
  packages/x/lefthook.yaml
  .lefthook.yml
  .lefthook/pre-commit/x.sh
  .cargo/config.toml
  packages/x/.cargo/config
  .pnp.cjs
  .pnp.loader.mjs
  .bazelrc
  .direnv/bin/x
  .tool-versions
  mise.toml
  .mise.toml
  .mise/tasks/x
  .nvim.lua
  .dir-locals.el
  .pdbrc
  .Rprofile
  .irbrc
  .ghci
  .mvn/extensions.xml
  .bundle/config
  .bashrc
  .zshenv
  .ssh/config
  node_modules/.bin/tsc
  packages/x/node_modules/.bin/vitest
  NODE_MODULES/.BIN/tsc
  ${HOME}/.bashrc
  ${HOME}/.bash_profile
  ${HOME}/.profile
  ${HOME}/.zshrc
  ${HOME}/.zprofile
  ${HOME}/.config/fish/config.fish
  ${HOME}/.config/git/config
  ${HOME}/.config/systemd/user/x.service
  ${HOME}/.config/autostart/x.desktop
  ${HOME}/.config/tidemark/settings.json
  ${HOME}/.local/share/tidemark/trust/x.json
  ${HOME}/.local/share/tidemark/sessions/x.jsonl
  ${HOME}/.ssh/authorized_keys
  ${HOME}/.gitconfig
  ${HOME}/.npmrc
  ${HOME}/Library/LaunchAgents/x.plist
`)

const createProtected = (more: Pick<AttackClass, 'mode' | 'allow'>, name: string): AttackClass => ({
  name: `protected paths, ${name}`,
  promise: 'asked by Write and Edit in every mode; a command that writes them is stopped by the sandbox only',
  expected: 'asked',
  writes: PROTECTED,
  ...more,
})

export const PATH_ATTACKS: readonly AttackClass[] = [
  createProtected({ mode: 'accept-edits' }, 'with edits allowed'),
  createProtected({ mode: 'allow-all' }, 'with everything allowed'),
  createProtected(
    { allow: ['Edit', 'Write', 'Edit(**)', `Edit(${FOLDER}/**)`, 'Edit(~/**)', 'Edit(/**)'] },
    'under wide rules',
  ),
  createProtected(
    { allow: PROTECTED.map((path) => `Edit(${path})`) },
    'under rules of a project that name them',
  ),
  {
    name: 'files that a bare name denies, at any depth',
    promise: 'refused to Read, Grep and Glob; a command can read them unless the sandbox is on',
    expected: 'refused',
    allow: ['Read'],
    deny: ['Read(.env)', 'Read(*.pem)', 'Read(secrets)'],
    mode: 'allow-all',
    reads: listLines(`
      .env
      sub/.env
      a/b/c/.env
      ${HOME}/.env
      key.pem
      certs/key.pem
      secrets
      secrets/a.txt
      sub/secrets/deep/a.txt
      .ENV
      sub/.Env
      Key.PEM
      SECRETS/a.txt
    `),
  },
  {
    name: 'ordinary files',
    promise: 'runs: no attack',
    expected: 'runs',
    mode: 'accept-edits',
    writes: listLines(`
      src/a.ts
      .gitignore
      .gitattributes
      .yarn/releases/notes.md
      .cargo/audit.toml
      docs/mise.md
      src/lefthook.ts
      hg/x
      .github/workflows/ci.yml
      .eslintrc.json
      .prettierrc
      .env.example
      .dockerignore
      docs/profile.md
      src/hooks/use-x.ts
      src/config
      git/config
      node_modules/x/index.js
      package.json
      Makefile
      CLAUDE.md
      AGENTS.md
      HEAD
      refs/x
    `),
  },
]
