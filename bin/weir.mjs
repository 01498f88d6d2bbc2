#!/usr/bin/env node
import { join } from 'node:path'
import { ensureInstalled, isRuntime, root, runAndExit } from '../scripts/bootstrap.mjs'

ensureInstalled({ development: false })
if (isRuntime()) await import('../src/main.ts')
else runAndExit([join(root, 'src', 'main.ts'), ...process.argv.slice(2)])
