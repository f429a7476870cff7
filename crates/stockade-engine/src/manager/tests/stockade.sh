#!/bin/sh
# Stands for `stockade` in tests that execute nothing.
echo "stockade 0.0.0"
