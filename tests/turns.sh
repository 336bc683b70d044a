# SPDX-License-Identifier: Apache-2.0
#
# What takes minutes does not run every day. To be sourced by bash: each day has one of these turns, by its number in the year
# (CCOM_TEST_DAY, or today's).
#   tsan      the reduced suite under the thread sanitizer
#   torch     the tests of the torch backend
#   fuzz      fuzz targets under libFuzzer
#   wheel     the Python wheel, made and used
#   debian    the README's lines, and Debian's packages, in a Debian of their own
#   is_turn NAME   whether it is today's
#   round          how many times all of them have come before today, in this year
turns=(tsan torch fuzz wheel torch debian)
day=$((10#${CCOM_TEST_DAY:-$(date +%-j)}))
round=$((day / ${#turns[@]}))

is_turn() { [ "${turns[day % ${#turns[@]}]}" = "$1" ]; }
