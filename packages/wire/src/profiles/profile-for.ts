/** From what is known of a model to the rules its requests obey. */
import { createProfile, type Profile, type ProfileOverrides } from '@tidemark/core'
import type { ModelEntry } from '../catalogue/model-entry.ts'
import { type AnthropicVersion, anthropicProfile } from './anthropic-profile.ts'
import { geminiProfile, openaiProfile, strangerProfile } from './generic-profile.ts'

export interface ProfileOptions {
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
