// SPDX-License-Identifier: BSL-1.0
#pragma once
// Everything: the planner with its standard rules and costs, graphs, plans and reports.
#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/builder.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/graph/graph_json.hpp>
#include <cantle/graph/mixed_precision.hpp>
#include <cantle/plan/plan_json.hpp>
#include <cantle/planner.hpp>
#include <cantle/program/ready_programs.hpp>
#include <cantle/report/program_text.hpp>
#include <cantle/report/report_json.hpp>
#include <cantle/report/svg.hpp>
#include <cantle/report/table.hpp>
#include <cantle/rules/standard_rules.hpp>
