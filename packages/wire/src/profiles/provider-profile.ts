/** From what is known of a model to the rules its requests obey. */
import { createProfile, type Profile, type ProfileOverrides } from '@tidemark/core'
import type { ModelEntry } from '../catalogue/model-entry.ts'
import { type AnthropicVersion, anthropicProfile } from './anthropic-profile.ts'
import { cacheOf, sizesOf, thinkingOf, windowOf } from './model-limits.ts'

interface ProfileOptions {
  /** The `anthropic-version` that requests name; the newer one refuses more, and is what is assumed. */
  readonly anthropicVersion?: AnthropicVersion
}

export function profileFor(model: ModelEntry, options: ProfileOptions = {}): Profile {
  return createProfile(rulesOf(model, options.anthropicVersion ?? '2026-10-21'))
}

function rulesOf(model: ModelEntry, version: AnthropicVersion): ProfileOverrides {
  if (model.vendor === 'anthropic') return anthropicProfile(model, version)
  if (model.vendor === 'openai') return openaiProfile(model)
  return model.vendor === 'google' ? geminiProfile(model) : strangerProfile(model)
}

// Profiles of providers that are reached through a codec of their own. The codec sees to their shape; what is
// said here is what the engine must know before it hands a request over.

/** Reasoning comes back as opaque items that only their model can use, without a signature of the kind we know. */
function opaqueThinking(model: ModelEntry): NonNullable<ProfileOverrides['thinking']> {
  const binding = model.thinking.binding ?? 'model'
  return {
    ...thinkingOf(model),
    binding,
    signed: false,
    closing: 'allowed',
    firstInModes: [],
    unforcedInModes: [],
  }
}

function common(model: ModelEntry): ProfileOverrides {
  return {
    name: `${model.id} (${model.vendor})`,
    ...windowOf(model),
    maxOutputRequired: false,
    tools: {
      declaredWhenUsed: false,
      forcedChoice: model.capabilities.forcedToolChoice === true ? 'allowed' : 'refused',
    },
    thinking: opaqueThinking(model),
    cache: { ...cacheOf(model), automatic: true },
    sizes: sizesOf(model),
  }
}

/** The codec writes an entry of its own for every result and text, so neither order nor turns are checked. */
function openaiProfile(model: ModelEntry): ProfileOverrides {
  const system = model.capabilities.systemMessages === true ? 'placed' : 'refused'
  return { ...common(model), roles: { first: 'any', consecutive: 'merged', system } }
}

function geminiProfile(model: ModelEntry): ProfileOverrides {
  return { ...common(model), roles: { consecutive: 'merged' } }
}

/** A model of a provider nobody has described: its own figures, and the strict rules. */
function strangerProfile(model: ModelEntry): ProfileOverrides {
  return {
    name: `${model.id} (${model.vendor})`,
    ...windowOf(model),
    roles: { prefill: model.capabilities.prefill === true ? 'allowed' : 'refused' },
    tools: { forcedChoice: model.capabilities.forcedToolChoice === true ? 'allowed' : 'refused' },
    thinking: thinkingOf(model),
    cache: cacheOf(model),
    sizes: sizesOf(model),
  }
}
