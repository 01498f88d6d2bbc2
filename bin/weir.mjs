#!/usr/bin/env node
import { join } from 'node:path'
import { ensureInstalled, root, runAndExit } from '../scripts/bootstrap.mjs'
import { ensureConsole } from '../scripts/build-console.mjs'

ensureInstalled({ development: false })
if (process.argv[2] === 'serve') ensureConsole()
runAndExit([join(root, 'src', 'main.ts'), ...process.argv.slice(2)])
